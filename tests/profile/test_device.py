"""Device time by dtype and on Tensor Cores, from a trace with kernel names as torch 2.13 has them on today's GPUs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dtlint.cli import main
from dtlint.profile.device import device_time, on_tensor_cores

YES = (
    "nvjet_hsh_64x8_64x16_4x1_v_bz_TNT",
    "nvjet_sm100_tst_128x256_64x6_2x1_2cta_v_bz_TNN",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn",
    "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x16_stage4_warpsize2x2x1_tensor16x8x8_kernel",
    "void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_256x128_32x3_tn_align8>(...)",
    "cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_void_bf16_128x128x64_1x2x1",
    "void cutlass::device_kernel<at::cuda::detail::enable_3x_kernel_for_sm9x<MainloopSm90TmaGmmaWarpSpecializedFP8>>",
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, cutlass::bfloat16_t>>(...)",
    "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<...>)",
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_6_128x128x64_4x1x1",
    "volta_h884gemm_128x64_ldg8_nn",
    "turing_fp16_s1688cudnn_fp16_256x128_ldg8_relu_f2f_exp_small_nhwc_tn_v1",
)
NO = (
    "ampere_sgemm_128x64_tn",
    "volta_sgemm_64x64_nn",
    "cutlass_80_simt_sgemm_128x64_8x5_nn_align1",
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_execute_kernel",
    "void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 128, 16, 4, 4, false>(...)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>(int, ...)",
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>(float*, float const*)",
    "triton_poi_fused_addmm_relu_1",
    "triton_per_fused_native_layer_norm_0",
    "void at::native::unrolled_elementwise_kernel<884, 1688>(int)",
)
PERHAPS = ("triton_tem_fused_addmm_2", "_attn_fwd", "matmul_kernel")


@pytest.mark.parametrize("kernel", YES)
def test_kernels_on_tensor_cores_are_known(kernel: str) -> None:
    assert on_tensor_cores(kernel) is True


@pytest.mark.parametrize("kernel", NO)
def test_other_kernels_are_not_taken_for_such(kernel: str) -> None:
    assert on_tensor_cores(kernel) is False


@pytest.mark.parametrize("kernel", PERHAPS)
def test_of_generated_products_nothing_is_claimed(kernel: str) -> None:
    assert on_tensor_cores(kernel) is None


def op(number: int, name: str, *types: str, dims: list[list[int]] | None = None) -> dict[str, Any]:
    dims = [[2, 2]] * len(types) if dims is None else dims
    args = {"External id": number, "Input type": list(types), "Input Dims": dims}
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": number, "dur": 1, "args": args}


def kernel(number: int, name: str, duration: float, cat: str = "kernel") -> dict[str, Any]:
    args = {"External id": number, "correlation": number}
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 7, "ts": number, "dur": duration, "args": args}


TRACE = [
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {}},
    op(1, "aten::addmm", "c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar"),
    kernel(1, YES[0], 600.0),
    op(2, "aten::mul", "c10::BFloat16", "double", dims=[[2, 2], []]),  # a Python number
    kernel(2, NO[5], 100.0),
    op(3, "aten::mm", "float", "float"),
    kernel(3, NO[0], 200.0),
    op(4, "aten::cat", "TensorList", "Scalar", dims=[[], []]),
    kernel(4, "CatArrayBatchedCopy", 40.0),
    op(5, "aten::index", "long int"),
    kernel(5, "index_kernel", 10.0),
    kernel(6, "Memcpy HtoD (Pageable -> Device)", 50.0, "gpu_memcpy"),
    {"ph": "X", "name": "no category"},
]


def test_time_is_told_by_the_dtypes_of_the_launching_operator() -> None:
    found = device_time(TRACE)
    assert found is not None
    assert (found.total, found.copies, found.on_tensor_cores) == (1000.0, 50.0, 600.0)
    assert found.by_dtype == {"bfloat16": 700.0, "float32": 200.0, "unknown": 40.0, "integers": 10.0}
    assert [(one.op, one.dtypes, one.kernels) for one in found.work][:2] == [
        ("aten::addmm", "bfloat16", 1),
        ("aten::mm", "float32", 1),
    ]


def test_a_profile_without_a_device_or_without_dtypes_says_so() -> None:
    assert device_time(TRACE[1:2]) is None
    bare = [{**event, "args": {"External id": 1}} for event in TRACE[1:3]]
    found = device_time(bare)
    assert found is not None
    assert (found.without_dtypes, found.by_dtype) == (True, {"unknown": 600.0})


def test_the_command_tells_it_of_a_file_and_of_the_newest_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.1.pt.trace.json").write_text(json.dumps({"traceEvents": TRACE}))
    for path in (tmp_path, tmp_path / "a.1.pt.trace.json"):
        done = CliRunner().invoke(main, ["profile", str(path)])
        assert done.exit_code == 0
        assert done.stdout.splitlines()[:3] == [
            "Device time: 1 ms in kernels and copies",
            "   70% bfloat16",
            "   20% float32",
        ]
        assert "On Tensor Cores, by the names of kernels: 60%" in done.stdout
    plain = json.loads(CliRunner().invoke(main, ["profile", str(tmp_path), "--output-format", "json"]).stdout)
    assert plain["on_tensor_cores"] == 600.0


def test_bad_input_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "cut.pt.trace.json").write_text('{"traceEvents": [')
    for arguments, message in (
        ([str(tmp_path / "none")], "cannot read"),
        ([str(tmp_path / "empty")], "ends in .pt.trace.json; dtlint trace --profile"),
        ([str(tmp_path / "cut.pt.trace.json")], "is no trace of torch.profiler"),
        ([str(tmp_path / "none"), "--tensorboard"], "is no folder"),
    ):
        done = CliRunner().invoke(main, ["profile", *arguments])
        assert (done.exit_code, message in done.stderr, done.stderr.count("\n")) == (2, True, 1), done.stderr
