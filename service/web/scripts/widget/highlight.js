// Colours for code: the text of a code block as spans with a class for each kind of token. The text itself never changes.
//
// A language is a list of rules, each a kind and a pattern; the first rule that matches at a place wins. A pattern that
// has begun never fails far away: what has no end (a string, a comment) lasts to the end of its line or of the text, and
// all else has a bound. So the time grows with the length of the text alone, whatever the text is.
//
// Kinds, each a class of the same name after "code-": comment, string, number, keyword, name (of a key, an attribute, a
// variable, a call), meta (decorators, prompts, selectors), added, removed.

const MAX_CODE = 20_000; // characters; longer code stays plain, because its nodes would take longer than a frame

// Patterns, all with the flags "g" and "m": $ is the end of a line, LAST the end of the text.

const LAST = "(?![^])";
const [LINE_COMMENT, HASH, DASHES] = ["\\/\\/.*", "(?<=^|\\s)#.*", "--.*"];
const BLOCK_COMMENT = `\\/\\*[^]*?(?:\\*\\/|${LAST})`;
const DOUBLE = '"[^"\\\\\\n]*(?:\\\\[^][^"\\\\\\n]*)*"?';
const SINGLE = "'[^'\\\\\\n]*(?:\\\\[^][^'\\\\\\n]*)*'?";
const BACKTICK = "`[^`\\\\]*(?:\\\\[^][^`\\\\]*)*`?";
const TRIPLE = `"""[^]*?(?:"""|${LAST})|'''[^]*?(?:'''|${LAST})`;
const CLOSED = '"[^"\\\\\\n]*(?:\\\\[^][^"\\\\\\n]*)*"';
const MULTILINE = '"[^"\\\\]*(?:\\\\[^][^"\\\\]*)*"?';
const CHARACTER = "'(?:\\\\[^\\n]{1,10}?|[^'\\\\\\n])'"; // closed, because 'a is a lifetime
const NUMBER = "\\b(?:0[xX][\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d[\\d_]*)?(?:[eE][+-]?\\d+)?)[a-zA-Z%]{0,5}";
const REGEX = "(?<=(?:^|[=(,:;!&|?{}]|\\breturn)[ \\t]{0,3})\\/(?![*\\/\\s])(?:[^\\\\\\/\\n[]|\\\\.|\\[(?:[^\\]\\\\\\n]|\\\\.){0,60}\\]){1,80}\\/[a-z]{0,8}";
const DECORATOR = "@[A-Za-z][\\w.]*";
const WORD = "[A-Za-z_$][\\w$]*";
const CALL = "[A-Za-z_$][\\w$]{0,60}(?=\\()";

const comment = (...patterns) => ["comment", ...patterns];
const string = (...patterns) => ["string", ...patterns];
const meta = (...patterns) => ["meta", ...patterns];
const name = (...patterns) => ["name", ...patterns];
const NUMBERS = ["number", NUMBER];
const WORDS = ["word", WORD];

/** Rules and keywords of a language of the family of C. */
const cLike = (keywords, ...rules) => ({ keywords, rules: [comment(LINE_COMMENT, BLOCK_COMMENT), ...rules, string(DOUBLE, SINGLE), NUMBERS, WORDS] });

const JAVASCRIPT = "abstract as async await break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in infer instanceof interface is keyof let namespace new null of private protected public readonly return satisfies set static super switch this throw true try type typeof undefined var void while with yield any bigint boolean never number object string symbol unknown";
const C = "auto break case char const continue default do double else enum extern float for goto if inline int long register return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false NULL size_t uint8_t uint16_t uint32_t uint64_t int8_t int16_t int32_t int64_t";
const JAVA = "abstract assert boolean break byte case catch char class const continue default do double else enum extends final finally float for if implements import instanceof int interface long native new null package private protected public record return sealed short static super switch synchronized this throw throws transient true false try var void volatile while yield";

const LANGUAGES = {
  javascript: cLike(JAVASCRIPT, string(BACKTICK), string(REGEX), meta(DECORATOR)),
  python: {
    keywords: "False None True and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return self try while with yield",
    rules: [comment("#.*"), string(`[rbfuRBFU]{0,2}(?:${TRIPLE}|${DOUBLE}|${SINGLE})`), meta("^[ \\t]*@[A-Za-z][\\w.]*", "^(?:>>>|\\.\\.\\.) ?"), NUMBERS, WORDS],
  },
  php: cLike("abstract and array as break case catch class clone const continue declare default do echo else elseif empty enum extends false final finally fn for foreach function global if implements include instanceof interface isset match namespace new null or private protected public readonly require require_once return static string int bool float switch this throw trait true try use var void while yield", meta("<\\?(?:php|=)?|\\?>"), comment("#(?!\\[).*"), name("\\$\\w+")),
  go: cLike("any bool break byte case chan const continue default defer else error fallthrough false float32 float64 for func go goto if import int int32 int64 interface iota map nil package range return rune select string struct switch true type uint uint8 var", string(BACKTICK)),
  rust: {
    keywords: "as async await bool break char const continue crate dyn else enum extern f32 f64 false fn for i8 i16 i32 i64 if impl in isize let loop match mod move mut pub ref return self Self static str struct super trait true type u8 u16 u32 u64 unsafe use usize where while",
    rules: [comment(LINE_COMMENT, BLOCK_COMMENT), meta("#!?\\[[^\\]\\n]*\\]?"), string(`r#"[^]*?(?:"#|${LAST})`, `b?${DOUBLE}`, CHARACTER), name("'[a-z_]\\w*", "[a-z_]\\w{0,60}!(?=[(\\[{])"), NUMBERS, WORDS],
  },
  java: cLike(JAVA, string(TRIPLE), meta(DECORATOR)),
  kotlin: cLike(`${JAVA} as by companion constructor data fun in init internal is it lateinit object open operator out override sealed suspend typealias val when where`, string(TRIPLE), meta(DECORATOR)),
  c: cLike(`${C} catch class concept constexpr decltype delete explicit export final friend mutable namespace new noexcept nullptr operator override private protected public requires static_cast template this throw try typename using virtual std string vector`, meta("^[ \\t]*#[ \\t]*\\w+"), string("(?<=#[ \\t]{0,3}include[ \\t]{0,3})<[^>\\n]{1,100}>")),
  csharp: cLike(`${JAVA} as async await base bool decimal delegate event foreach get in init internal is lock namespace object operator out override params partial readonly ref required set string struct typeof uint using value virtual when where with`, string('[$@]{1,2}"[^"\\n]*"?'), meta("^[ \\t]*#\\w+")),
  sql: {
    keywords: "add all alter analyze and as asc begin between bigint boolean by cascade case char check column commit constraint create cross current_timestamp database date default delete desc distinct drop else end exists explain false foreign from full function grant group having if ilike in index inner insert int integer interval into is join key left like limit not null numeric offset on or order outer over partition primary references replace returning revoke right rollback schema select serial set table text then timestamp to transaction trigger true truncate union unique update using values varchar view when where with",
    ignoresCase: true,
    rules: [comment(DASHES, BLOCK_COMMENT), string("'[^']*'?"), name('"[^"\\n]*"?', "`[^`\\n]*`?", "[:$@]\\w+"), NUMBERS, WORDS],
  },
  shell: {
    keywords: "alias break case cd continue declare do done echo elif else esac eval exec exit export fi for function if in local read return select set shift source sudo then time trap unset until while ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL RUN SHELL STOPSIGNAL USER VOLUME WORKDIR",
    rules: [meta("^(?:\\w{0,30}@[\\w.:~\\/-]{1,60})?[$%] ", "^(?:PS [^>\\n]{0,80})?> "), comment(HASH), string(MULTILINE, "'[^'\\n]{0,500}'"), name("\\$(?:\\w+|\\{[^}\\n]{0,100}\\}?|[@*#?$!-])", "(?<=\\s)--?[A-Za-z][\\w-]*", "^[ \\t]*[A-Za-z_]\\w{0,80}(?==)"), NUMBERS, ["word", "[A-Za-z_][\\w.\\/-]*"]],
  },
  json: { keywords: "true false null", rules: [comment(LINE_COMMENT, BLOCK_COMMENT), name(`(?:${CLOSED}|${WORD})(?=\\s{0,3}:)`), string(DOUBLE, SINGLE), NUMBERS, WORDS] },
  yaml: {
    keywords: "true false null True False",
    rules: [comment(HASH), meta("^(?:---|\\.\\.\\.)$", "(?<=\\s)[&*!][\\w.\\/!-]+"), name("^[ \\t]*(?:-[ \\t]+){0,9}[\\w.$\\/@<\"'-][^\\n:#]{0,100}(?=:(?:\\s|$))", "[\\w.-]{1,60}(?=: )"), string(DOUBLE, SINGLE), NUMBERS, ["word", "[A-Za-z_][\\w.\\/-]*"]],
  },
  toml: {
    keywords: "true false on off yes no null inf nan",
    rules: [comment("^[ \\t]*;.*", HASH), meta("^[ \\t]*\\[[^\\]\\n]*\\]{0,2}"), name("^[ \\t]*[\\w.\"'-][^=\\n#:]{0,100}(?=[=:])"), string(TRIPLE, DOUBLE, SINGLE), ["number", "\\b\\d{4}-\\d\\d-\\d\\d[\\dTZ:.+-]{0,30}"], NUMBERS, WORDS],
  },
  css: {
    keywords: "important not and or only from to",
    rules: [comment(BLOCK_COMMENT, "(?<=^|\\s)\\/\\/.*"), string(DOUBLE, SINGLE), ["keyword", "@[\\w-]+"], ["number", "#[\\da-fA-F]{3,8}\\b"], name("[$]?-{0,2}[A-Za-z][\\w-]{0,80}(?=[ \\t]{0,3}:(?!:))", "--[\\w-]+", "\\$[\\w-]+"), meta("(?<![\\w\"'])[.#][A-Za-z][\\w-]*"), NUMBERS, ["word", "[A-Za-z][\\w-]*"]],
  },
  html: { keywords: "", rules: [comment(`<!--[^]*?(?:-->|${LAST})`), ["tag", "<[\\/?!]?[A-Za-z](?:[^<>\"']|\"[^\"]*\"?|'[^']*'?)*>?"], meta("&#?\\w{1,20};", "\\{[{%][^}\\n]{0,200}[}%]\\}")] },
  tag: { keywords: "", rules: [["keyword", "^<[\\/?!]?[\\w:.-]+", "[\\/?]?>$"], string('(?<==\\s{0,3})(?:"[^"]*"?|\'[^\']*\'?|[^\\s"\'>]+)'), name("[^\\s=\"'<>\\/]+")] },
  diff: { keywords: "", rules: [meta("^(?:diff |index |---|\\+\\+\\+|@@|new file|deleted file|rename ).*"), ["added", "^\\+.*"], ["removed", "^-.*"]] },
};

const ALIASES = {
  javascript: "js jsx mjs cjs node ts tsx typescript mts cts", python: "py python3 pycon", go: "golang", rust: "rs", kotlin: "kt kts",
  c: "h cpp c++ cc cxx hpp objc", csharp: "cs c#", shell: "sh bash zsh fish console shell-session shellscript terminal powershell ps1 pwsh bat docker dockerfile makefile make",
  json: "jsonc json5 jsonl webmanifest", yaml: "yml", toml: "ini properties env dotenv cfg conf editorconfig", css: "scss sass less",
  html: "xml svg vue svelte mdx astro xhtml rss plist jinja hbs", sql: "mysql postgresql postgres sqlite plsql psql", diff: "patch",
};

const grammars = new Map();

/** The grammar of a language: its pattern, the kind of each group, and the keywords; undefined for an unknown language. */
function grammarOf(language) {
  if (grammars.has(language)) return grammars.get(language);
  const wanted = Object.keys(ALIASES).find((one) => ALIASES[one].split(" ").includes(language)) ?? language;
  const known = Object.hasOwn(LANGUAGES, wanted) ? LANGUAGES[wanted] : undefined;
  let grammar;
  if (known) {
    const rules = known.rules.flatMap((rule) => (rule[0] === "word" ? [["call", CALL], rule] : [rule]));
    grammar = {
      source: rules.map(([, ...patterns]) => `(${patterns.join("|")})`).join("|"), kinds: rules.map(([kind]) => kind),
      keywords: new Set(known.keywords.split(" ")), ignoresCase: known.ignoresCase,
    };
  }
  grammars.set(language, grammar);
  return grammar;
}

/** The tokens of some code, each a kind ("" for plain) and its text; null for a language or a length that stays plain. */
export function tokensOf(code, language) {
  const grammar = code.length <= MAX_CODE ? grammarOf(language.toLowerCase()) : undefined;
  return grammar ? lexed(code, grammar) : null;
}

function lexed(code, grammar) {
  const tokens = [];
  const pattern = new RegExp(grammar.source, "gm");
  let done = 0;
  const add = (kind, text) => {
    const last = tokens.at(-1);
    if (last && last[0] === kind) last[1] += text;
    else if (text) tokens.push([kind, text]);
  };
  for (let match; (match = pattern.exec(code)); ) {
    const [text] = match;
    if (!text) {
      pattern.lastIndex += 1;
      continue;
    }
    add("", code.slice(done, match.index));
    done = match.index + text.length;
    const kind = grammar.kinds[match.indexOf(text, 1) - 1];
    if (kind !== "tag") {
      add(kindOf(kind, text, grammar), text);
      continue;
    }
    for (const one of lexed(text, grammarOf("tag"))) add(...one);
    const inside = /^<(?:script|(style))\b/i.exec(text);
    if (!inside || text.endsWith("/>")) continue;
    const close = /<\/(?:script|style)/gi;
    close.lastIndex = done;
    const within = code.slice(done, close.exec(code)?.index ?? code.length);
    for (const one of lexed(within, grammarOf(inside[1] ? "css" : "javascript"))) add(...one);
    done += within.length;
    pattern.lastIndex = done;
  }
  add("", code.slice(done));
  return tokens;
}

function kindOf(kind, text, { keywords, ignoresCase }) {
  if (kind !== "word" && kind !== "call") return kind;
  if (keywords.has(ignoresCase ? text.toLowerCase() : text)) return "keyword";
  return kind === "call" ? "name" : "";
}

/** Colour a `code` element whose class names its language (`language-…`); spans get the class `code-` and their kind. */
export function highlight(element, document = element.ownerDocument) {
  const language = /(?:^|\s)language-(\S+)/.exec(element.className)?.[1];
  const tokens = language && tokensOf(element.textContent, language);
  if (!tokens) return;
  const nodes = tokens.map(([kind, text]) => {
    if (!kind) return document.createTextNode(text);
    const span = document.createElement("span");
    span.className = `code-${kind}`;
    span.append(text);
    return span;
  });
  element.replaceChildren(...nodes);
}
