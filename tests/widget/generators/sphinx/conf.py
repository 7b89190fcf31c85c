project = "Kite"
extensions = ["myst_parser"]
# TAG
