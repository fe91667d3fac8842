# Generated from semconv/model/*.yaml by `python semconv/generate.py`. Do not edit.
"""Every attribute of the semantic model, and an enumeration of the values of those that list them."""

from __future__ import annotations

from enum import Enum

from rlotel.semconv.types import Attribute


class EnvironmentType(str, Enum):
    """What kind of world gives the reward."""

    SIMULATED = "simulated"
    REWARD_MODEL = "reward_model"
    LIVE = "live"

    __str__ = str.__str__


class RunState(str, Enum):
    """The state of a run."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"

    __str__ = str.__str__


class RestartReason(str, Enum):
    """Why a run had to be started again."""

    FAILED = "failed"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    __str__ = str.__str__


class PhaseName(str, Enum):
    """A named part of the loop."""

    LOOP = "loop"
    SAMPLE = "sample"
    REWARD = "reward"
    TRAIN = "train"
    SYNC = "sync"
    DATA = "data"
    LOGPROB = "logprob"
    REF_LOGPROB = "ref_logprob"
    VALUE = "value"
    ADVANTAGE = "advantage"
    EVALUATE = "evaluate"
    CHECKPOINT = "checkpoint"
    OFFLOAD = "offload"
    OTHER = "other"
    IDLE = "idle"

    __str__ = str.__str__


class Role(str, Enum):
    """Which model a phase is about, or what a GPU or process is for."""

    ACTOR = "actor"
    CRITIC = "critic"
    REFERENCE = "reference"
    REWARD = "reward"
    TRAINER = "trainer"
    ROLLOUT = "rollout"
    SHARED = "shared"

    __str__ = str.__str__


class SampleKind(str, Enum):
    """Whether rollouts are being made or waited for."""

    GENERATE = "generate"
    WAIT = "wait"

    __str__ = str.__str__


class TokenType(str, Enum):
    """Whether a token was given or made."""

    PROMPT = "prompt"
    COMPLETION = "completion"

    __str__ = str.__str__


class LossType(str, Enum):
    """Which part of the loss."""

    POLICY = "policy"
    VALUE = "value"
    KL_DIVERGENCE = "kl_divergence"
    ENTROPY = "entropy"
    TOTAL = "total"

    __str__ = str.__str__


class KlReference(str, Enum):
    """What the divergence is measured from."""

    REFERENCE = "reference"
    OLD_POLICY = "old_policy"
    ROLLOUT = "rollout"

    __str__ = str.__str__


class ValueName(str, Enum):
    """The metric that a value was for."""

    TRAIN_LOSS = "rl.train.loss"
    ENVIRONMENT_REWARD_MEAN = "rl.environment.reward.mean"
    ENVIRONMENT_EPISODE_LENGTH_MEAN = "rl.environment.episode.length.mean"
    ENVIRONMENT_EPISODE_TURNS_MEAN = "rl.environment.episode.turns.mean"
    KL_DIVERGENCE = "rl.kl.divergence"
    ENTROPY = "rl.entropy"
    GRAD_NORM = "rl.grad_norm"
    LEARNING_RATE = "rl.learning_rate"
    SAMPLE_TRUNCATED_RATIO = "rl.sample.truncated.ratio"
    SAMPLE_ABORTED_RATIO = "rl.sample.aborted.ratio"
    TRAIN_CLIP_RATIO = "rl.train.clip.ratio"
    REWARD_ZERO_VARIANCE_RATIO = "rl.reward.zero_variance.ratio"
    EVALUATION_SCORE = "rl.evaluation.score"

    __str__ = str.__str__


class ValueKind(str, Enum):
    """In what way a value was not finite."""

    NAN = "nan"
    INF = "inf"

    __str__ = str.__str__


class CheckpointOperation(str, Enum):
    """What was done with a checkpoint."""

    SAVE = "save"
    RESTORE = "restore"
    REPLICATE = "replicate"
    BACKUP = "backup"
    DELETE = "delete"

    __str__ = str.__str__


class CheckpointTier(str, Enum):
    """Where a checkpoint lies."""

    RAM = "ram"
    LOCAL_DISK = "local_disk"
    PEER = "peer"
    OBJECT_STORAGE = "object_storage"
    PARALLEL_FS = "parallel_fs"

    __str__ = str.__str__


class CheckpointState(str, Enum):
    """How safe a checkpoint is."""

    SAVED = "saved"
    DURABLE = "durable"

    __str__ = str.__str__


class GoodputWindow(str, Enum):
    """Over what time goodput is taken."""

    RUN = "run"
    INTERVAL = "interval"

    __str__ = str.__str__


class GoodputCategory(str, Enum):
    """What a second was spent on. The four add up to elapsed time."""

    PRODUCTIVE = "productive"
    OVERHEAD = "overhead"
    IDLE = "idle"
    WASTED = "wasted"

    __str__ = str.__str__


class BadputType(str, Enum):
    """Why a second was not productive."""

    INITIALIZATION = "initialization"
    DATA_LOADING = "data_loading"
    CHECKPOINT_SAVE = "checkpoint_save"
    CHECKPOINT_RESTORE = "checkpoint_restore"
    WEIGHT_SYNC = "weight_sync"
    ROLLOUT_WAIT = "rollout_wait"
    REWARD_WAIT = "reward_wait"
    EVALUATION = "evaluation"
    WASTED_PROGRESS = "wasted_progress"
    RECOVERY = "recovery"
    OTHER = "other"

    __str__ = str.__str__


class HwType(str, Enum):
    """The type of the component."""

    GPU = "gpu"
    BATTERY = "battery"
    CPU = "cpu"
    DISK_CONTROLLER = "disk_controller"
    ENCLOSURE = "enclosure"
    FAN = "fan"
    LOGICAL_DISK = "logical_disk"
    MEMORY = "memory"
    NETWORK = "network"
    PHYSICAL_DISK = "physical_disk"
    POWER_SUPPLY = "power_supply"
    TAPE_DRIVE = "tape_drive"
    TEMPERATURE = "temperature"
    VOLTAGE = "voltage"

    __str__ = str.__str__


class HwGpuTask(str, Enum):
    """What the GPU works at."""

    GENERAL = "general"
    DECODER = "decoder"
    ENCODER = "encoder"

    __str__ = str.__str__


class HwState(str, Enum):
    """The state of the component."""

    OK = "ok"
    DEGRADED = "degraded"
    FAILED = "failed"
    PREDICTED_FAILURE = "predicted_failure"
    NEEDS_CLEANING = "needs_cleaning"

    __str__ = str.__str__


class HwLimitType(str, Enum):
    """What kind of limit."""

    CRITICAL = "critical"
    DEGRADED = "degraded"
    HIGH_CRITICAL = "high.critical"
    HIGH_DEGRADED = "high.degraded"
    LOW_CRITICAL = "low.critical"
    LOW_DEGRADED = "low.degraded"
    MAX = "max"
    THROTTLED = "throttled"
    TURBO = "turbo"

    __str__ = str.__str__


class NetworkIoDirection(str, Enum):
    """Whether bytes come or go."""

    RECEIVE = "receive"
    TRANSMIT = "transmit"

    __str__ = str.__str__


class GpuClock(str, Enum):
    """Which clock of the GPU."""

    SM = "sm"
    MEMORY = "memory"

    __str__ = str.__str__


class GpuThrottleReason(str, Enum):
    """Why the GPU ran below its clock."""

    SW_POWER_CAP = "sw_power_cap"
    HW_SLOWDOWN = "hw_slowdown"
    SW_THERMAL = "sw_thermal"
    HW_THERMAL = "hw_thermal"
    HW_POWER_BRAKE = "hw_power_brake"
    SYNC_BOOST = "sync_boost"

    __str__ = str.__str__


class GpuRemapCause(str, Enum):
    """Which errors a memory row was remapped for."""

    CORRECTABLE = "correctable"
    UNCORRECTABLE = "uncorrectable"

    __str__ = str.__str__


class RlotelRefusalReason(str, Enum):
    """Why a value was not taken."""

    BOOL = "bool"
    TEXT = "text"
    DEVICE_TENSOR = "device_tensor"
    ARRAY = "array"
    NOT_A_NUMBER = "not_a_number"
    OVERFLOW = "overflow"
    NEGATIVE = "negative"
    ABOVE_ONE = "above_one"
    CARDINALITY = "cardinality"
    QUEUE_FULL = "queue_full"
    UNKNOWN = "unknown"

    __str__ = str.__str__


class RlotelExportSignal(str, Enum):
    """Which kind of telemetry an export carried."""

    METRICS = "metrics"
    TRACES = "traces"

    __str__ = str.__str__


RUN_ID = Attribute(
    name="rl.run.id",
    type="string",
    brief="One training run, from its first launch over all its restarts.",
    stability="development",
    examples=(
        "grpo-qwen3-4b-0412",
        "81723",
    ),
)
SYSTEM = Attribute(
    name="rl.system",
    type="string",
    brief="The framework that runs the loop.",
    stability="development",
    examples=(
        "nemo-rl",
        "verl",
        "ray-rllib",
        "trl",
        "custom",
    ),
)
SYSTEM_VERSION = Attribute(
    name="rl.system.version",
    type="string",
    brief="The version of that framework.",
    stability="development",
    examples=("0.6.0",),
)
ALGORITHM = Attribute(
    name="rl.algorithm",
    type="string",
    brief="The algorithm that updates the policy.",
    stability="development",
    examples=(
        "GRPO",
        "PPO",
        "DQN",
    ),
)
MODEL_NAME = Attribute(
    name="rl.model.name",
    type="string",
    brief="The policy's model, as its users name it.",
    stability="development",
    examples=("Qwen/Qwen3-4B",),
)
ENVIRONMENT_NAME = Attribute(
    name="rl.environment.name",
    type="string",
    brief="The environment's id, or the name of the prompt data set.",
    stability="development",
    examples=(
        "CartPole-v1",
        "openai/gsm8k",
    ),
)
ENVIRONMENT_TYPE = Attribute(
    name="rl.environment.type",
    type="string",
    brief="What kind of world gives the reward.",
    stability="development",
    members=(
        "simulated",
        "reward_model",
        "live",
    ),
)
AGENT_COUNT = Attribute(
    name="rl.agent.count",
    type="int",
    brief="How many agents learn or act in the environment.",
    stability="development",
    examples=(
        1,
        4,
    ),
)
RUN_STATE = Attribute(
    name="rl.run.state",
    type="string",
    brief="The state of a run.",
    stability="development",
    members=(
        "running",
        "completed",
        "failed",
        "preempted",
        "cancelled",
    ),
    closed=True,
)
RESTART_REASON = Attribute(
    name="rl.restart.reason",
    type="string",
    brief="Why a run had to be started again.",
    stability="development",
    members=(
        "failed",
        "preempted",
        "cancelled",
        "unknown",
    ),
    closed=True,
)
FINDING_NAME = Attribute(
    name="rl.finding.name",
    type="string",
    brief="What was judged, in a word or two.",
    stability="development",
    examples=(
        "entropy_collapse",
        "grad_spike",
        "suspected_reward_hacking",
        "mfu_mismatch",
    ),
)
EVALUATION_NAME = Attribute(
    name="rl.evaluation.name",
    type="string",
    brief="The evaluation a score belongs to, with the statistic where there are several.",
    stability="development",
    examples=(
        "openai/gsm8k",
        "aime24.pass_at_8",
    ),
)
LOOP_ITERATION = Attribute(
    name="rl.loop.iteration",
    type="int",
    brief="The number of the iteration, as the framework counts.",
    stability="development",
    examples=(
        1,
        417,
    ),
)
PHASE_NAME = Attribute(
    name="rl.phase.name",
    type="string",
    brief="A named part of the loop.",
    stability="development",
    members=(
        "loop",
        "sample",
        "reward",
        "train",
        "sync",
        "data",
        "logprob",
        "ref_logprob",
        "value",
        "advantage",
        "evaluate",
        "checkpoint",
        "offload",
        "other",
        "idle",
    ),
)
ROLE = Attribute(
    name="rl.role",
    type="string",
    brief="Which model a phase is about, or what a GPU or process is for.",
    stability="development",
    members=(
        "actor",
        "critic",
        "reference",
        "reward",
        "trainer",
        "rollout",
        "shared",
    ),
)
WORKER_RANK = Attribute(
    name="rl.worker.rank",
    type="int",
    brief="The rank of a worker within its role.",
    stability="development",
    examples=(
        0,
        63,
    ),
)
ERROR_TYPE = Attribute(
    name="error.type",
    type="string",
    brief="The class of error that something failed with.",
    stability="stable",
    examples=(
        "torch.cuda.OutOfMemoryError",
        "TimeoutError",
    ),
)
SAMPLE_KIND = Attribute(
    name="rl.sample.kind",
    type="string",
    brief="Whether rollouts are being made or waited for.",
    stability="development",
    members=(
        "generate",
        "wait",
    ),
    closed=True,
)
SAMPLE_BATCH_SIZE = Attribute(
    name="rl.sample.batch_size",
    type="int",
    brief="How many rollouts the phase was asked for.",
    stability="development",
    examples=(512,),
)
SAMPLE_SAMPLES = Attribute(
    name="rl.sample.samples",
    type="int",
    brief="How many training rows the phase produced, without padding.",
    stability="development",
    examples=(512,),
)
SAMPLE_EPISODES = Attribute(
    name="rl.sample.episodes",
    type="int",
    brief="How many episodes finished in the phase.",
    stability="development",
    examples=(512,),
)
SAMPLE_TOKENS = Attribute(
    name="rl.sample.tokens",
    type="int",
    brief="Prompt and completion tokens of the phase.",
    stability="development",
    examples=(81000,),
)
TOKEN_TYPE = Attribute(
    name="rl.token.type",
    type="string",
    brief="Whether a token was given or made.",
    stability="development",
    members=(
        "prompt",
        "completion",
    ),
    closed=True,
)
REWARD_SANDBOX = Attribute(
    name="rl.reward.sandbox",
    type="string",
    brief="Where rewards are computed.",
    stability="development",
    examples=(
        "gke-agent-sandbox",
        "local",
    ),
)
TRAIN_BATCH_SIZE = Attribute(
    name="rl.train.batch_size",
    type="int",
    brief="How many rows one update is made of.",
    stability="development",
    examples=(512,),
)
TRAIN_STEPS = Attribute(
    name="rl.train.steps",
    type="int",
    brief="How many optimizer steps the phase took.",
    stability="development",
    examples=(4,),
)
TRAIN_TOKENS = Attribute(
    name="rl.train.tokens",
    type="int",
    brief="How many non-padding tokens the phase trained on.",
    stability="development",
    examples=(81000,),
)
LOSS_TYPE = Attribute(
    name="rl.loss.type",
    type="string",
    brief="Which part of the loss.",
    stability="development",
    members=(
        "policy",
        "value",
        "kl_divergence",
        "entropy",
        "total",
    ),
)
SYNC_SOURCE = Attribute(
    name="rl.sync.source",
    type="string",
    brief="Where the weights come from.",
    stability="development",
    examples=("learner",),
)
SYNC_DESTINATION = Attribute(
    name="rl.sync.destination",
    type="string",
    brief="Where the weights go.",
    stability="development",
    examples=(
        "vllm",
        "sglang",
    ),
)
SYNC_BYTES = Attribute(
    name="rl.sync.bytes",
    type="int",
    brief="How many bytes of weights were sent.",
    stability="development",
    examples=(16000000000,),
)
KL_REFERENCE = Attribute(
    name="rl.kl.reference",
    type="string",
    brief="What the divergence is measured from.",
    stability="development",
    members=(
        "reference",
        "old_policy",
        "rollout",
    ),
    closed=True,
)
VALUE_NAME = Attribute(
    name="rl.value.name",
    type="string",
    brief="The metric that a value was for.",
    stability="development",
    members=(
        "rl.train.loss",
        "rl.environment.reward.mean",
        "rl.environment.episode.length.mean",
        "rl.environment.episode.turns.mean",
        "rl.kl.divergence",
        "rl.entropy",
        "rl.grad_norm",
        "rl.learning_rate",
        "rl.sample.truncated.ratio",
        "rl.sample.aborted.ratio",
        "rl.train.clip.ratio",
        "rl.reward.zero_variance.ratio",
        "rl.evaluation.score",
    ),
)
VALUE_KIND = Attribute(
    name="rl.value.kind",
    type="string",
    brief="In what way a value was not finite.",
    stability="development",
    members=(
        "nan",
        "inf",
    ),
    closed=True,
)
CHECKPOINT_OPERATION = Attribute(
    name="rl.checkpoint.operation",
    type="string",
    brief="What was done with a checkpoint.",
    stability="development",
    members=(
        "save",
        "restore",
        "replicate",
        "backup",
        "delete",
    ),
    closed=True,
)
CHECKPOINT_TIER = Attribute(
    name="rl.checkpoint.tier",
    type="string",
    brief="Where a checkpoint lies.",
    stability="development",
    members=(
        "ram",
        "local_disk",
        "peer",
        "object_storage",
        "parallel_fs",
    ),
)
CHECKPOINT_BLOCKING = Attribute(
    name="rl.checkpoint.blocking",
    type="boolean",
    brief="Whether training stood still for it.",
    stability="development",
)
CHECKPOINT_STATE = Attribute(
    name="rl.checkpoint.state",
    type="string",
    brief="How safe a checkpoint is.",
    stability="development",
    members=(
        "saved",
        "durable",
    ),
    closed=True,
)
GOODPUT_WINDOW = Attribute(
    name="rl.goodput.window",
    type="string",
    brief="Over what time goodput is taken.",
    stability="development",
    members=(
        "run",
        "interval",
    ),
    closed=True,
)
GOODPUT_CATEGORY = Attribute(
    name="rl.goodput.category",
    type="string",
    brief="What a second was spent on. The four add up to elapsed time.",
    stability="development",
    members=(
        "productive",
        "overhead",
        "idle",
        "wasted",
    ),
    closed=True,
)
BADPUT_TYPE = Attribute(
    name="rl.badput.type",
    type="string",
    brief="Why a second was not productive.",
    stability="development",
    members=(
        "initialization",
        "data_loading",
        "checkpoint_save",
        "checkpoint_restore",
        "weight_sync",
        "rollout_wait",
        "reward_wait",
        "evaluation",
        "wasted_progress",
        "recovery",
        "other",
    ),
    closed=True,
)
HW_ID = Attribute(
    name="hw.id",
    type="string",
    brief="The component's id, unique within the host.",
    stability="development",
    examples=("GPU-5fd4f087-86f3-7a43-b711-4771313afc50",),
)
HW_TYPE = Attribute(
    name="hw.type",
    type="string",
    brief="The type of the component.",
    stability="development",
    members=(
        "gpu",
        "battery",
        "cpu",
        "disk_controller",
        "enclosure",
        "fan",
        "logical_disk",
        "memory",
        "network",
        "physical_disk",
        "power_supply",
        "tape_drive",
        "temperature",
        "voltage",
    ),
)
HW_NAME = Attribute(
    name="hw.name",
    type="string",
    brief="A name that is easily recognised.",
    stability="development",
    examples=("GPU 0",),
)
HW_PARENT = Attribute(
    name="hw.parent",
    type="string",
    brief="The id of the component it belongs to: of a sensor or a MIG slice, the GPU's UUID.",
    stability="development",
    examples=("GPU-5fd4f087-86f3-7a43-b711-4771313afc50",),
)
HW_MODEL = Attribute(
    name="hw.model",
    type="string",
    brief="The model, as the driver names it.",
    stability="development",
    examples=("NVIDIA H100 80GB HBM3",),
)
HW_VENDOR = Attribute(
    name="hw.vendor",
    type="string",
    brief="Who made it.",
    stability="development",
    examples=("NVIDIA",),
)
HW_SERIAL_NUMBER = Attribute(
    name="hw.serial_number",
    type="string",
    brief="The serial number.",
    stability="development",
    examples=("1652021001234",),
)
HW_DRIVER_VERSION = Attribute(
    name="hw.driver_version",
    type="string",
    brief="The version of the driver.",
    stability="development",
    examples=("570.86.15",),
)
HW_GPU_TASK = Attribute(
    name="hw.gpu.task",
    type="string",
    brief="What the GPU works at.",
    stability="development",
    members=(
        "general",
        "decoder",
        "encoder",
    ),
)
HW_STATE = Attribute(
    name="hw.state",
    type="string",
    brief="The state of the component.",
    stability="development",
    members=(
        "ok",
        "degraded",
        "failed",
        "predicted_failure",
        "needs_cleaning",
    ),
    closed=True,
)
HW_SENSOR_LOCATION = Attribute(
    name="hw.sensor_location",
    type="string",
    brief="Where the sensor sits.",
    stability="development",
    examples=(
        "gpu",
        "memory",
    ),
)
HW_LIMIT_TYPE = Attribute(
    name="hw.limit_type",
    type="string",
    brief="What kind of limit.",
    stability="development",
    members=(
        "critical",
        "degraded",
        "high.critical",
        "high.degraded",
        "low.critical",
        "low.degraded",
        "max",
        "throttled",
        "turbo",
    ),
)
NETWORK_IO_DIRECTION = Attribute(
    name="network.io.direction",
    type="string",
    brief="Whether bytes come or go.",
    stability="development",
    members=(
        "receive",
        "transmit",
    ),
    closed=True,
)
GPU_CLOCK = Attribute(
    name="rl.gpu.clock",
    type="string",
    brief="Which clock of the GPU.",
    stability="development",
    members=(
        "sm",
        "memory",
    ),
    closed=True,
)
GPU_THROTTLE_REASON = Attribute(
    name="rl.gpu.throttle.reason",
    type="string",
    brief="Why the GPU ran below its clock.",
    stability="development",
    members=(
        "sw_power_cap",
        "hw_slowdown",
        "sw_thermal",
        "hw_thermal",
        "hw_power_brake",
        "sync_boost",
    ),
    closed=True,
)
GPU_REMAP_CAUSE = Attribute(
    name="rl.gpu.remap.cause",
    type="string",
    brief="Which errors a memory row was remapped for.",
    stability="development",
    members=(
        "correctable",
        "uncorrectable",
    ),
    closed=True,
)
GPU_XID_CODE = Attribute(
    name="rl.gpu.xid.code",
    type="int",
    brief="NVIDIA's number for the error.",
    stability="development",
    examples=(
        48,
        79,
    ),
)
GPU_DTYPE = Attribute(
    name="rl.gpu.dtype",
    type="string",
    brief="The number format a peak holds for.",
    stability="development",
    examples=(
        "bf16",
        "fp8",
    ),
)
RLOTEL_PLACE = Attribute(
    name="rlotel.place",
    type="string",
    brief="The part of rlotel that an error was contained in: a fixed word of the code, never a message.",
    stability="development",
    examples=(
        "patching",
        "integrations.verl",
        "collectors.gpu",
    ),
)
RLOTEL_REFUSAL_REASON = Attribute(
    name="rlotel.refusal.reason",
    type="string",
    brief="Why a value was not taken.",
    stability="development",
    members=(
        "bool",
        "text",
        "device_tensor",
        "array",
        "not_a_number",
        "overflow",
        "negative",
        "above_one",
        "cardinality",
        "queue_full",
        "unknown",
    ),
    closed=True,
)
RLOTEL_EXPORT_SIGNAL = Attribute(
    name="rlotel.export.signal",
    type="string",
    brief="Which kind of telemetry an export carried.",
    stability="development",
    members=(
        "metrics",
        "traces",
    ),
    closed=True,
)

IDENTITY: tuple[Attribute, ...] = (
    RUN_ID,
    SYSTEM,
    SYSTEM_VERSION,
    ALGORITHM,
    MODEL_NAME,
    ENVIRONMENT_NAME,
    ENVIRONMENT_TYPE,
)
"""What every metric point and every Resource of spans carries."""

REQUIRED_IDENTITY: tuple[Attribute, ...] = (
    RUN_ID,
    SYSTEM,
)
"""What they always carry."""

ALL: tuple[Attribute, ...] = (
    RUN_ID,
    SYSTEM,
    SYSTEM_VERSION,
    ALGORITHM,
    MODEL_NAME,
    ENVIRONMENT_NAME,
    ENVIRONMENT_TYPE,
    AGENT_COUNT,
    RUN_STATE,
    RESTART_REASON,
    FINDING_NAME,
    EVALUATION_NAME,
    LOOP_ITERATION,
    PHASE_NAME,
    ROLE,
    WORKER_RANK,
    ERROR_TYPE,
    SAMPLE_KIND,
    SAMPLE_BATCH_SIZE,
    SAMPLE_SAMPLES,
    SAMPLE_EPISODES,
    SAMPLE_TOKENS,
    TOKEN_TYPE,
    REWARD_SANDBOX,
    TRAIN_BATCH_SIZE,
    TRAIN_STEPS,
    TRAIN_TOKENS,
    LOSS_TYPE,
    SYNC_SOURCE,
    SYNC_DESTINATION,
    SYNC_BYTES,
    KL_REFERENCE,
    VALUE_NAME,
    VALUE_KIND,
    CHECKPOINT_OPERATION,
    CHECKPOINT_TIER,
    CHECKPOINT_BLOCKING,
    CHECKPOINT_STATE,
    GOODPUT_WINDOW,
    GOODPUT_CATEGORY,
    BADPUT_TYPE,
    HW_ID,
    HW_TYPE,
    HW_NAME,
    HW_PARENT,
    HW_MODEL,
    HW_VENDOR,
    HW_SERIAL_NUMBER,
    HW_DRIVER_VERSION,
    HW_GPU_TASK,
    HW_STATE,
    HW_SENSOR_LOCATION,
    HW_LIMIT_TYPE,
    NETWORK_IO_DIRECTION,
    GPU_CLOCK,
    GPU_THROTTLE_REASON,
    GPU_REMAP_CAUSE,
    GPU_XID_CODE,
    GPU_DTYPE,
    RLOTEL_PLACE,
    RLOTEL_REFUSAL_REASON,
    RLOTEL_EXPORT_SIGNAL,
)
BY_NAME = {attribute.name: attribute for attribute in ALL}
