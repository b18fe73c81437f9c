# The demo in a container, on the CPU:
#   docker build -t pysimt_sac .
#   docker run --name demo pysimt_sac && docker cp demo:/app/runs .
# Any other command runs the same way: docker run --rm pysimt_sac pysimt-sac --help
FROM python:3.11-slim

# Where pip also looks, e.g. an index with the CPU build of torch, which is some gigabytes smaller:
#   docker build --build-arg PIP_EXTRA_INDEX_URL=ADDRESS -t pysimt_sac .
ARG PIP_EXTRA_INDEX_URL=""

RUN apt-get update \
    && apt-get install --yes --no-install-recommends make \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home user \
    && install --directory --owner user /app
USER user
WORKDIR /app
ENV PATH="/app/.venv/bin:$PATH" PIP_NO_CACHE_DIR=1

COPY --chown=user Makefile setup.py pyproject.toml constraints.txt README.md LICENSE ./
COPY --chown=user pysimt_sac pysimt_sac
COPY --chown=user experiments experiments
RUN make .venv/.ready

CMD ["make", "demo"]
