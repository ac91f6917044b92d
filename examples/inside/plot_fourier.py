"""
Fourier against Nystroem
========================

There are two ways to make a kernel explicit. Nystroem compares rows with landmarks, and so knows
where the data are. Fourier features are waves of random frequencies, the same for all data. At the
same number, landmarks have the smaller error; waves need no eigenproblem and no rows to draw them
from.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

from asset_svm import AssetClassifier, FourierMap, NystroemMap

X, y = load_digits(return_X_y=True)
X = X / 16
order = np.random.default_rng(0).permutation(len(X))
X, y = X[order], y[order]
gamma, some = 0.3, X[1400:1700]
kernel = rbf_kernel(some, gamma=gamma)

MAPS = {
    "Nystroem, uniform": lambda d, seed: NystroemMap(gamma=gamma, n_components=d, random_state=seed),
    "Nystroem, k-means": lambda d, seed: NystroemMap(
        gamma=gamma, n_components=d, landmarks="kmeans", random_state=seed
    ),
    "Fourier, iid": lambda d, seed: FourierMap(gamma=gamma, n_components=d, random_state=seed),
    "Fourier, orthogonal": lambda d, seed: FourierMap(
        gamma=gamma, n_components=d, fourier="orthogonal", random_state=seed
    ),
}

# %%
# The error of the kernel on rows that were not drawn from, and the error of digits read with the
# maps, means over three seeds.

sizes = [32, 64, 128, 256, 512]
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.5, 4.2))
for (name, make), marker in zip(MAPS.items(), "os^v", strict=True):
    kernel_errors, test_errors = [], []
    for size in sizes:
        of_kernel, of_test = [], []
        for seed in range(3):
            drawn = make(size, seed).fit(X[:1200])
            V = drawn.transform(some)
            of_kernel.append(np.linalg.norm(V @ V.T - kernel) / np.linalg.norm(kernel))
            model = AssetClassifier(C=10, approximation=drawn, random_state=0).fit(X[:1200], y[:1200])
            of_test.append(100 * (1 - model.score(X[1200:], y[1200:])))
        kernel_errors.append(np.mean(of_kernel))
        test_errors.append(np.mean(of_test))
    left.loglog(sizes, kernel_errors, marker=marker, label=name)
    middle.loglog(sizes, test_errors, marker=marker, label=name)
left.set(xlabel="components", ylabel="relative error", title="Error of the kernel matrix")
middle.set(xlabel="components", ylabel="%", title="Test error of digits")
middle.legend(fontsize="small")
for ax in (left, middle):
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.minorticks_off()

waves = FourierMap(gamma=gamma, n_components=64, random_state=0).fit(X[:1200]).transform(some)
marks = NystroemMap(gamma=gamma, n_components=64, random_state=0).fit(X[:1200]).transform(some)
exact = kernel[np.triu_indices(len(some), 1)]
for V, name, colour in ((waves, "Fourier", "C2"), (marks, "Nystroem", "C0")):
    right.scatter(
        exact[::9], (V @ V.T)[np.triu_indices(len(some), 1)][::9], s=3, alpha=0.3, color=colour
    )
    right.scatter([], [], color=colour, label=f"{name}, 64")
right.plot([0, 1], [0, 1], "k", linewidth=1)
right.set(xlabel="k(x, z)", ylabel="phi(x) . phi(z)", title="Kernel values, pair by pair")
right.legend()
plt.show()
