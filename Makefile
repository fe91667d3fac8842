# Two words for a newcomer: `make demo` and `make test`. Both build their own .venv from nothing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
# The oldest Python that is here, for the oldest OpenTelemetry that is promised.
OLDEST_PYTHON ?= $(PYTHON)
OLDEST_OTEL := 1.30.0
RAY_VENV := .venv-ray
RAY := 2.60.0
VERL_VENV := .venv-verl
# Releases beside the one that is installed; each is put on the path instead of it.
VERL_OTHERS := 0.5.0 0.6.1 0.7.0 0.7.1 0.8.0 0.9.0
TRAINERS_VENV := .venv-trainers
TRAINERS := trl rllib rsl_rl stable_baselines3 skrl
# Older releases that are run as well, as PACKAGE==VERSION.
TRAINERS_OTHERS := rsl-rl-lib==2.3.3 rsl-rl-lib==3.0.1 rsl-rl-lib==5.0.1 skrl==2.0.0 trl==0.29.1
HEAVY_VENV := .venv-trainers-heavy
HEAVY := skyrl openrlhf areal
HEAVY_RELEASES := skyrl==0.3.0 openrlhf==0.11.2 areal==1.0.4

.PHONY: help demo test check lint types layers fresh unit generate venv test-oldest test-frameworks test-ray test-verl test-nemo test-trainers test-trainers-heavy system-packages bench bench-ray bench-verl bench-trainers bench-trainers-heavy chart clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

demo: $(VENV)/.demo ## train a small policy with GRPO and watch it through rlotel (about 30 s)
	@$(BIN)/rlotel demo

test: check unit ## everything a change must pass

check: lint types layers fresh ## lint, types, import layers, freshness of generated files

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy
	$(BIN)/mypy tests benchmarks examples
	cd semconv && ../$(BIN)/mypy --config-file ../pyproject.toml generate.py generator

layers: $(VENV)/.dev
	$(BIN)/lint-imports

fresh: $(VENV)/.dev
	$(BIN)/python semconv/generate.py --check
	$(BIN)/rlotel dashboards render --out dashboards --check
	$(BIN)/rlotel alerts render --out alerts --check

generate: $(VENV)/.dev ## write everything that is generated from semconv, dashboards and alerts
	$(BIN)/python semconv/generate.py
	$(BIN)/rlotel dashboards render --out dashboards
	$(BIN)/rlotel alerts render --out alerts

unit: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadgroup

bench: $(VENV)/.dev ## ratios against the same work written by hand on the OpenTelemetry SDK
	$(BIN)/python -m benchmarks

bench-ray: $(RAY_VENV)/.ready ## what a call of a Ray actor costs, next to Ray's own tracing
	$(RAY_VENV)/bin/python -m benchmarks.ray_calls

bench-verl: $(VERL_VENV)/.ready ## what verl's own loop costs, with and without rlotel, and with a dead collector
	$(VERL_VENV)/bin/python -m benchmarks.verl_loop

bench-trainers: $(TRAINERS_VENV)/.ready ## what the loops of TRL, RLlib, rsl_rl, Stable-Baselines3 and skrl cost with rlotel
	$(TRAINERS_VENV)/bin/python -m benchmarks.trainers --out benchmarks/trainers.json $(TRAINERS)

bench-trainers-heavy: $(HEAVY_VENV)/.ready ## the same of SkyRL, OpenRLHF and AReaL
	$(HEAVY_VENV)/bin/python -m benchmarks.trainers --out benchmarks/trainers.json $(HEAVY)

chart: $(VENV)/.dev ## draw what was measured of the trainers
	$(BIN)/python -m benchmarks.chart benchmarks/trainers.json docs/overhead.png

test-oldest: $(OLDEST)/.dev ## the core tests on the oldest OpenTelemetry that is promised
	$(OLDEST)/bin/python -m pytest -n 2 --dist loadgroup

test-frameworks: test-ray test-verl test-nemo test-trainers ## the integrations on the frameworks themselves, each in an environment of its own

test-ray: $(RAY_VENV)/.ready ## Ray, on a cluster of two nodes in this machine (about 4 min)
	$(RAY_VENV)/bin/python -m pytest tests/frameworks/ray

test-nemo: $(VENV)/.dev ## NeMo RL's stand-ins; with RLOTEL_NEMO_SRC=CHECKOUT also against its source
	$(BIN)/python -m pytest tests/frameworks/nemo_rl

test-verl: $(VERL_VENV)/.ready ## verl's real loops on a CPU, 0.5 to 0.9, without the GPUs (about 5 min)
	$(VERL_VENV)/bin/python -m pytest tests/frameworks/verl

test-trainers: $(TRAINERS_VENV)/.ready ## TRL, RLlib, rsl_rl, Stable-Baselines3 and skrl on a CPU (about 6 min)
	$(TRAINERS_VENV)/bin/python -m pytest $(addprefix tests/frameworks/,$(TRAINERS)) tests/adapters tests/importing

test-trainers-heavy: $(HEAVY_VENV)/.ready ## SkyRL, OpenRLHF and AReaL on a CPU with engines that are none (not in CI)
	$(HEAVY_VENV)/bin/python -m pytest $(addprefix tests/frameworks/,$(HEAVY))

system-packages: ## what some tests want from the system (Debian, as root): Prometheus with its promtool
	@{ command -v promtool && command -v prometheus; } >/dev/null || \
		{ apt-get update -q && apt-get install -q -y --no-install-recommends prometheus; }

venv: $(VENV)/.dev

$(VENV)/.demo: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.demo

$(OLDEST)/.dev: pyproject.toml
	$(OLDEST_PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[demo,test]' \
		opentelemetry-api==$(OLDEST_OTEL) opentelemetry-sdk==$(OLDEST_OTEL) \
		opentelemetry-exporter-otlp-proto-grpc==$(OLDEST_OTEL) opentelemetry-exporter-otlp-proto-http==$(OLDEST_OTEL)
	@touch $@

$(RAY_VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(RAY_VENV)
	$(RAY_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[ray,test]' 'ray[default]==$(RAY)'
	@touch $@

$(VERL_VENV)/.ready: pyproject.toml tests/frameworks/verl/requirements.txt
	$(PYTHON) -m venv $(VERL_VENV)
	$(VERL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		-e '.[ray,test]' -r tests/frameworks/verl/requirements.txt
	for release in $(VERL_OTHERS); do \
		$(VERL_VENV)/bin/python -m pip download --quiet --disable-pip-version-check --no-deps \
			--dest $(VERL_VENV)/releases verl==$$release && \
		$(VERL_VENV)/bin/python -m zipfile --extract $(VERL_VENV)/releases/verl-$$release-*.whl \
			$(VERL_VENV)/releases/$$release || exit 1; \
	done
	@touch $@

# Unpack RELEASES into VENV/releases, to be put on the path: $(call unpack,VENV,RELEASES)
define unpack
	@for release in $(2); do \
		$(1)/bin/python -m pip download --quiet --disable-pip-version-check --no-deps \
			--dest $(1)/releases $$release && \
		folder=$(1)/releases/$$(echo $$release | sed 's/==/-/') && \
		for wheel in $(1)/releases/$$(echo $$release | sed 's/-/_/g; s/==/-/')-*.whl; do \
			$(1)/bin/python -m zipfile --extract $$wheel $$folder && \
			{ cp -r $$folder/*.data/purelib/. $$folder/ 2>/dev/null || true; }; \
		done || exit 1; \
	done
endef

$(TRAINERS_VENV)/.ready: pyproject.toml tests/frameworks/trainers.txt
	$(PYTHON) -m venv $(TRAINERS_VENV)
	$(TRAINERS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		-e '.[ray,test]' -r tests/frameworks/trainers.txt
	$(call unpack,$(TRAINERS_VENV),$(TRAINERS_OTHERS))
	@touch $@

$(HEAVY_VENV)/.ready: pyproject.toml tests/frameworks/trainers-heavy.txt
	$(PYTHON) -m venv $(HEAVY_VENV)
	$(HEAVY_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		-e '.[ray,test]' -r tests/frameworks/trainers-heavy.txt
	DS_BUILD_OPS=0 $(HEAVY_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		--no-build-isolation deepspeed==0.19.6
	$(call unpack,$(HEAVY_VENV),$(HEAVY_RELEASES))
	@touch $@

clean: ## remove the virtual environments and caches
	rm -rf $(VENV) $(OLDEST) $(RAY_VENV) $(VERL_VENV) $(TRAINERS_VENV) $(HEAVY_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
