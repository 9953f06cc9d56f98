"""The private names of TensorFlow, each once: its module and its purpose."""

from __future__ import annotations

from ..unpromised import Name, Names

TAPES = "whether a tape records operations on tensors"
GRAPHS = "graphs that compute as eager operations do"
NAMES = {
    "should_record_backprop": Name(
        "tensorflow.python.eager.record", "should_record_backprop", TAPES, since="2.18"
    ),
    "should_record_of_c": Name(
        "tensorflow.python.pywrap_tfe", "TFE_Py_TapeSetShouldRecordBackprop", TAPES, since="2.18"
    ),
    "imperative_grad": Name(
        "tensorflow.python.eager.imperative_grad",
        "imperative_grad",
        "gradients without the tape's own handling of nests",
        since="2.18",
    ),
    "eager_context": Name("tensorflow.python.eager.context", "context", GRAPHS, since="2.18"),
    "function_call_options": Name(
        "tensorflow.python.eager.context", "FunctionCallOptions", GRAPHS, since="2.18"
    ),
    "EagerTensor": Name(
        "tensorflow", "__internal__.EagerTensor", "the type of tensors with values", since="2.18"
    ),
}
ALL = Names("tensorflow", "TensorFlow 2.19 to 2.21", NAMES)
