#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# "Data Processing Pipeline", as the first users' document has it, line by line. What differs is marked:
# `image` until distribution images can be had (ubuntu:22.04 comes from a registry), `network` for what
# needs one (the image has Python already).
#
# usage: data-pipeline.sh    (`bl` in PATH, a server in CELLA_URL; reads and writes the current folder)
set -euo pipefail

# Create a sandbox for data processing
# image: --image ubuntu:22.04
bl sandbox create --name data-processor --image host --cpu 2 --memory 4Gi

# Install required software
# network: apt-get update && apt-get install -y python3 python3-pip
bl run data-processor process exec "python3 --version && pip --version"

# Upload data files
bl run data-processor file write /data/input.csv --from-file ./local-data.csv

# Create and run processing script
bl run data-processor file write /data/process.py --from-file ./process.py
bl run data-processor process exec "python3 /data/process.py"

# Download results
bl run data-processor file read /data/output.csv > ./processed-data.csv
