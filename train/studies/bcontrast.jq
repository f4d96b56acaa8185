# A dialogue of BConTrasT (WMT 2020 chat task) as a document. Agents write English and customers German; the other language is a
# human translation. Utterances that lack a side are left out.
to_entries[] | {id: .key, pairs: [
    .value[]
    | (if .speaker == "agent" then [.source, .target] else [.target, .source] end)
    | map(gsub("^\\s+|\\s+$"; ""))
    | select(all(. != ""))
]}
| select(.pairs != []) | {id, en: [.pairs[][0]], de: [.pairs[][1]]}
