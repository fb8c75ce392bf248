"""The names of figures of what was drafted and written: acceptance and quality."""

from draftboard.metric_kinds import of_kind

__all__ = ["ACCEPTANCE", "DETAILS", "QUALITY"]

ACCEPTANCE = (
    of_kind(
        "acceptance",
        "acceptance_length",
        "Acceptance length τ",
        "tokens kept per step, pooled over steps; autoregressive decoding is 1.00",
    ),
    of_kind(
        "acceptance",
        "acceptance_length_raw",
        "τ before the cut",
        "1 + accepted drafts per step, what end or limit cut away included",
    ),
    of_kind(
        "acceptance",
        "acceptance_length_mean_of_samples",
        "τ, mean of per-sample values",
        "acceptance length averaged over samples, every sample equal",
    ),
    of_kind(
        "acceptance",
        "accepted_per_step",
        "Accepted drafts per step",
        "accepted draft tokens that were kept, per step; the bonus not counted",
    ),
    of_kind(
        "acceptance",
        "accepted_per_step_raw",
        "Accepted drafts per step before the cut",
        "accepted draft tokens per step, what was cut away included",
    ),
    of_kind(
        "acceptance",
        "block_efficiency",
        "Block efficiency",
        "output tokens that the prefill did not give, over the target's forwards after it",
    ),
    of_kind(
        "acceptance",
        "tokens_per_target_pass",
        "Tokens per target pass",
        "all output tokens over steps plus prefill passes (block efficiency with prefill)",
    ),
    of_kind(
        "acceptance",
        "spec_bench_mean_accepted",
        "Mean accepted tokens (Spec-Bench)",
        "mean entry of accept_lengths as exported: the prefill's token an entry, the bonus counted",
    ),
    of_kind(
        "acceptance",
        "specdec_bench_al",
        "AL (specdec_bench)",
        "mean over requests of their mean chunk; the prefill a chunk, a closing end token removed",
    ),
    of_kind(
        "acceptance",
        "vllm_acceptance_length",
        "Mean acceptance length (vLLM)",
        "1 + accepted over drafts, steps without a draft left out",
    ),
    of_kind(
        "acceptance",
        "acceptance_rate",
        "Acceptance rate α",
        "accepted over drafted (longest drafted path), pooled over steps",
    ),
    of_kind(
        "acceptance",
        "acceptance_rate_raw",
        "α before the cut",
        "accepted over drafted, what end or limit cut away counted as accepted",
    ),
    of_kind(
        "acceptance",
        "acceptance_rate_nodes",
        "Acceptance rate over nodes",
        "accepted over all drafted nodes, branches included",
    ),
    of_kind(
        "acceptance",
        "acceptance_rate_mean_of_samples",
        "α, mean of per-sample values",
        "acceptance rate averaged over samples that drafted",
    ),
    of_kind(
        "acceptance",
        "nodes_per_step",
        "Drafted nodes per step",
        "drafted tokens verified in a step, all branches counted",
        digits=1,
    ),
)

QUALITY = (
    of_kind("quality", "bleu", "BLEU", "corpus BLEU by sacrebleu, 0-100", digits=1),
    of_kind("quality", "chrf", "chrF", "corpus chrF2 by sacrebleu, 0-100", digits=1),
    of_kind("quality", "rouge1", "ROUGE-1", "ROUGE-1 F1, mean over samples, 0-100", digits=1),
    of_kind("quality", "rouge2", "ROUGE-2", "ROUGE-2 F1, mean over samples, 0-100", digits=1),
    of_kind("quality", "rougeL", "ROUGE-L", "ROUGE-L F1, mean over samples, 0-100", digits=1),
    of_kind("quality", "rougeLsum", "ROUGE-Lsum", "ROUGE-Lsum F1, mean over samples, 0-100", digits=1),
    of_kind("quality", "accuracy", "Accuracy", "share of right final answers, 0-1", digits=3),
    of_kind("quality", "em", "Exact match", "share of answers that equal an alias once normalised, 0-1", digits=3),
    of_kind("quality", "f1", "Token F1", "F1 of the bags of tokens, best alias, mean over answers, 0-100", digits=1),
    of_kind("quality", "contains", "Contains", "share of answers that an alias occurs in, 0-1", digits=3),
    of_kind(
        "quality", "pass_at_1", "Pass@1", "share of programs that passed their tests at the first try, 0-1", digits=3
    ),
)

DETAILS = (
    of_kind(
        "quality_detail", "bleu_clean", "BLEU, cleaned", "BLEU without a preamble or quotation marks, 0-100", digits=1
    ),
    of_kind(
        "quality_detail", "chrf_clean", "chrF, cleaned", "chrF without a preamble or quotation marks, 0-100", digits=1
    ),
    *(
        of_kind("quality_detail", f"{name}_clean", f"{title}, cleaned", f"{title} without a preamble, 0-100", digits=1)
        for name, title in (
            ("rouge1", "ROUGE-1"),
            ("rouge2", "ROUGE-2"),
            ("rougeL", "ROUGE-L"),
            ("rougeLsum", "ROUGE-Lsum"),
        )
    ),
    of_kind(
        "quality_detail",
        "brevity_penalty",
        "Brevity penalty",
        "BLEU's factor for short answers, 1 for long ones",
        digits=3,
    ),
    of_kind("quality_detail", "length_ratio", "Length ratio", "tokens of the answers over the references'", digits=3),
    of_kind("quality_detail", "mean_words", "Mean words", "words of an answer, mean over answers", digits=1),
    of_kind(
        "quality_detail",
        "accuracy_macro",
        "Accuracy, mean of categories",
        "accuracy averaged over categories, 0-1",
        digits=3,
    ),
    of_kind(
        "quality_detail",
        "last_number",
        "Accuracy, last number",
        "share of right last numbers, `####` ignored, 0-1",
        digits=3,
    ),
    of_kind(
        "quality_detail",
        "hash_number",
        "Accuracy, number after ####",
        "share of right numbers after ####, else last ones, 0-1",
        digits=3,
    ),
    of_kind(
        "quality_detail",
        "any_number",
        "Right number anywhere",
        "share of answers with the right number in them, 0-1",
        digits=3,
    ),
    of_kind(
        "quality_detail",
        "unparsed_rate",
        "Unparsed answers",
        "share of answers without a readable result, 0-1",
        digits=3,
        up=False,
    ),
    of_kind(
        "quality_detail",
        "truncated_rate",
        "Answers cut by the limit",
        "share of answers that the limit on new tokens or the model's window cut, 0-1",
        digits=3,
        up=False,
    ),
)
