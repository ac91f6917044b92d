"""Models for where there is no Python package of ours: ONNX graphs, and C.

describing    what is exported: an estimator, a served model or a file, as its description
graph         an ONNX graph that the parts of a description write (``runtime.operations``)
onnx_file     its inputs and outputs; ``to_onnx``
c_text        the text of C: literals, arrays, helping functions, statements
code          statements of C that the parts write likewise
c_file        its functions, and the head that tells how they are called; ``to_c``
columns       the functions of columns of a table, and what else both ways share
"""

from asset_svm.export.c_file import to_c
from asset_svm.export.onnx_file import to_onnx

__all__ = ["to_c", "to_onnx"]
