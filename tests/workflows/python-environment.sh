#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# "Setting up a Python Environment", as the first users' document has it, line by line. What differs is
# marked: `image` until distribution images can be had (python:3.9 comes from a registry), `index` because
# the sandbox has no network, so pip finds its packages in a folder. The versions are ones that exist
# for the image's Python.
#
# usage: python-environment.sh WHEELS    (a folder of wheels; `bl` in PATH, a server in CELLA_URL)
set -euo pipefail
wheels=$1

# Create a new sandbox
# image: --image python:3.9
bl sandbox create --name python-env --image host --disk 4Gi \
    --env PIP_NO_INDEX=1 --env PIP_FIND_LINKS=/app/index --env PIP_BREAK_SYSTEM_PACKAGES=1 # index

# Wait for the sandbox to be running
bl sandbox wait python-env --status running

# Create a requirements.txt file
bl run python-env file write /app/requirements.txt --content "
numpy==1.26.4
pandas==2.2.3
matplotlib==3.9.4
"

# Create a Python script
bl run python-env file write /app/script.py --content "
import numpy as np
import pandas as pd
import matplotlib.pyplot as plt
print('Python environment is ready!')
"

bl cp -r "$wheels" python-env:/app/index # index

# Install dependencies
bl run python-env process exec "pip install -r /app/requirements.txt"

# Run the script
bl run python-env process exec "python /app/script.py"
