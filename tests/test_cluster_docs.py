"""Tests of the recipes for clusters, as far as one machine can."""

from __future__ import annotations

import json
import re
import shlex
from importlib import util
from pathlib import Path

import pytest

from lns import cli
from lns.commands import submit

DOCS = Path(__file__).parent.parent / "docs"
GUIDE = DOCS / "cluster.md"
pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="needs the source tree")


def blocks(language):
    """The code blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)


def commands(program):
    """The commands of the guide that begin with a program, as words."""
    lines = [line.strip() for block in blocks("bash") for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith(program)]


def load(name):
    """A YAML file of the guide."""
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((DOCS / "cluster" / name).read_text(encoding="utf-8"))


def check_training(words):
    """Whether `lns train` understands these words; options that it is yet to learn are left out."""
    parser = cli.build_parser()
    known = {option for action in submit.train_parser()._actions for option in action.option_strings}
    kept, wanted = [], cli.join_negative(words)
    for at, word in enumerate(wanted):
        before = wanted[at - 1] if at else ""
        if word.startswith("--") and word.partition("=")[0] not in known:
            continue
        if before.startswith("--") and "=" not in before and before not in known:
            continue
        kept.append(word)
    return parser.parse_args(["train", *kept])


def test_the_links_lead_somewhere():
    """Tests that every relative link of the guide is a file."""
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", GUIDE.read_text(encoding="utf-8")):
        assert (DOCS / target).exists(), target


def test_the_submit_commands_are_understood():
    """Tests the options of every `lns submit` in the guide."""
    found = commands("lns submit")
    assert len(found) >= 4
    for words in found:
        args = cli.build_parser().parse_args(cli.join_negative(words[1:]))
        assert submit.training_words(args) is not None


def test_the_ray_commands_are_understood():
    """Tests that `ray start` knows the options of the guide and of the launcher's file."""
    click_command = pytest.importorskip("ray.scripts.scripts").start
    known = {option for parameter in click_command.params for option in parameter.opts}
    launcher = load("cluster.yaml")
    lines = [*launcher["head_start_ray_commands"], *launcher["worker_start_ray_commands"]]
    lines += [" ".join(words) for words in commands("RAY_AUTH_MODE=token ray start")]
    starts = [line.partition("ray start")[2] for line in lines if "ray start" in line]
    assert len(starts) == 4
    for start in starts:
        assert set(re.findall(r"--[a-z-]+", start)) <= known


def test_the_launcher_file_fits_rays_schema():
    """Tests the cluster launcher's file against the schema that `ray up` uses."""
    jsonschema = pytest.importorskip("jsonschema")
    folder = Path(util.find_spec("ray").origin).parent / "autoscaler"
    config = load("cluster.yaml")
    jsonschema.validate(config, json.loads((folder / "ray-schema.json").read_text()))
    assert config["provider"]["type"] == "local"
    assert len(config["provider"]["worker_ips"]) == config["max_workers"]


def test_the_rayjob_has_what_kuberay_needs():
    """Tests kind, cluster and containers of the Kubernetes job, and that all pods run one image."""
    job = load("rayjob.yaml")
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    spec = job["spec"]
    cluster = spec["rayClusterSpec"]
    assert cluster["authOptions"] == {"mode": "token"}
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    containers = [group["template"]["spec"]["containers"] for group in groups]
    assert all("rayStartParams" in group for group in groups)
    assert len({one["image"] for each in containers for one in each}) == 1
    for group in cluster["workerGroupSpecs"]:
        assert group["groupName"]
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    words = shlex.split(spec["entrypoint"])
    assert words[:4] == ["python", "-m", "lns", "train"]
    assert check_training(words[4:]).dataset == "covertype"
    assert words[-5:] == ["--backend", "ray", "--address", "auto", "--json"]


@pytest.mark.ray
def test_the_python_of_the_guide_runs(ray_cluster, capsys):
    """Tests the example of shards on the cluster of the tests."""
    (code,) = blocks("py")
    exec(compile(code, str(GUIDE), "exec"), {})
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("ShardedProblem(2,000 examples x 5 features")
    assert shown[1] == "2000 0"
