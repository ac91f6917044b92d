"""The command ``asset``; needs the extra ``cli``. Modules import what they need when they run."""
