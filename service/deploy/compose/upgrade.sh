#!/bin/sh
# Replaces the instances one by one: builds the image from the program beside this file, then waits after each instance
# until it is ready. The last one is the home of the embedded code host, which is away for some seconds meanwhile.
set -eu
cd "$(dirname "$0")"
docker compose build docsmith-1
for instance in docsmith-2 docsmith-3 docsmith-1; do
    docker compose up --detach --no-deps --wait "$instance"
done
docker compose up --detach --no-deps --wait proxy
