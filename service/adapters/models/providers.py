"""The providers that a model can be added of by name.

Facts: names before the slash are those of litellm 1.106 (docs.litellm.ai, "Providers"), and the variables of keys those
that it reads. Names of models are examples, out of its table of prices where they are in it.
"""

from service.ports.model_provider import ModelProvider, Parameter

_TOOLS = "Choose a model that calls tools, or jobs of the agent do not work with it."

PROVIDERS = (
    ModelProvider("openai", "OpenAI", "openai/", "gpt-5.2", "OPENAI_API_KEY"),
    ModelProvider(
        "anthropic", "Anthropic", "anthropic/", "claude-sonnet-5-5", "ANTHROPIC_API_KEY",
        says="What each call of a job repeats comes from its cache, and costs less.",
    ),
    ModelProvider(
        "gemini", "Gemini", "gemini/", "gemini-3.5-flash", "GEMINI_API_KEY",
        says="The key is one of Google AI Studio.",
    ),
    ModelProvider(
        "azure", "Azure OpenAI", "azure/", "OUR-DEPLOYMENT", "AZURE_API_KEY", "https://OUR-RESOURCE.openai.azure.com",
        (Parameter("api_version", "Version of the API", "2025-04-01-preview"),), 272_000,
        says="The model is the name of your deployment, so that its window and price have to be given.",
    ),
    ModelProvider(
        "bedrock", "Amazon Bedrock", "bedrock/", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "AWS_BEARER_TOKEN_BEDROCK", parameters=(Parameter("aws_region_name", "Region", "eu-central-1"),),
        says="The key is a Bedrock API key. Keys of an AWS account need boto3 beside Docsmith.",
    ),
    ModelProvider(
        "openrouter", "OpenRouter", "openrouter/", "anthropic/claude-sonnet-4.5", "OPENROUTER_API_KEY",
        says="Prices are not known for most of its models: give them, or no limit on the cost holds.",
    ),
    ModelProvider("groq", "Groq", "groq/", "openai/gpt-oss-120b", "GROQ_API_KEY",
        says="Its limits of tokens a minute are small on the free plan, so that jobs often wait."),
    ModelProvider("mistral", "Mistral", "mistral/", "mistral-large-latest", "MISTRAL_API_KEY"),
    ModelProvider(
        "deepseek", "DeepSeek", "deepseek/", "deepseek-v4-flash", "DEEPSEEK_API_KEY",
    ),
    ModelProvider("xai", "xAI", "xai/", "grok-4.7", "XAI_API_KEY"),
    ModelProvider(
        "ollama", "Ollama", "ollama_chat/", "qwen3:8b", "", "http://127.0.0.1:11434", (), 32_768, is_free=True,
        says="Fetch the model first with ollama pull. The window is sent with each request.",
    ),
    ModelProvider(
        "vllm", "vLLM", "hosted_vllm/", "Qwen/Qwen3-32B", "", "http://127.0.0.1:8000/v1", (), 40_960, is_free=True,
        says="Start it with --enable-auto-tool-choice and the --tool-call-parser of the model.",
    ),
    ModelProvider(
        "llama-cpp", "llama.cpp", "openai/", "local", "", "http://127.0.0.1:8081/v1", (), 32_768, is_free=True,
        says="Start it with --jinja, on another port than Docsmith, and give the window of its -c here.",
    ),
    ModelProvider(
        "lm-studio", "LM Studio", "lm_studio/", "qwen3-8b", "", "http://127.0.0.1:1234/v1", (), 32_768, is_free=True,
        says="Load the model with a window of 16,000 tokens or more.",
    ),
    ModelProvider(
        "other", "another, by address", "openai/", "local", "", "http://127.0.0.1:8000/v1", (), 32_768,
        says="Any server that speaks OpenAI's chat completions.",
    ),
)  # fmt: skip
"""In the order in which people are asked."""
