//! What the scan finds in bodies that clients send, what it leaves to `JSON.parse`, and that no bytes make it panic.

use guidevane_core::names::uses;
use guidevane_core::scan::{Facts, Span, scan};

fn facts(body: &str) -> Facts {
    scan(body.as_bytes()).unwrap_or_else(|| panic!("unusual: {body}"))
}

fn text(body: &str, span: Span) -> &str {
    &body[span.start..span.end]
}

#[test]
fn a_chat_body_gives_its_model_its_key_pieces_and_what_it_uses() {
    let body = r#" { "model" : "m-1", "stream":true, "max_tokens": 77, "max_completion_tokens":12,
        "messages":[{"role":"system","content":"be brief"},{"content":[{"type":"text","text":"hi"}],"role":"user"},
                    {"role":"system","content":"late"}], "tools":[{}], "response_format":{"type":"json_schema"} } "#;
    let found = facts(body);
    assert_eq!(text(body, found.model), "m-1");
    assert!(found.stream && found.has_messages && found.has_user && !found.has_turn && !found.store);
    assert_eq!(found.max_tokens, 77);
    assert_eq!(found.uses, uses::TOOLS | uses::JSON_SCHEMA);
    assert_eq!(found.piece_count, 1);
    assert_eq!(text(body, found.pieces[0]), r#""be brief""#);
    assert_eq!(text(body, found.user), r#"[{"type":"text","text":"hi"}]"#);
}

#[test]
fn appended_turns_leave_the_key_pieces_as_they_were() {
    let head = r#"{"model":"m","messages":[{"role":"developer","content":"d"},{"role":"user","content":"u"}"#;
    let first = format!("{head}]}}");
    let later = format!(
        r#"{head},{{"role":"assistant","content":"a"}},{{"role":"system","content":"s"}},{{"role":"user","content":"v"}}]}}"#
    );
    let (first_facts, later_facts) = (facts(&first), facts(&later));
    assert_eq!(first_facts.user, later_facts.user);
    assert_eq!(first_facts.pieces, later_facts.pieces);
    assert!(!first_facts.has_turn && later_facts.has_turn);
}

#[test]
fn images_and_sound_are_needs_and_their_bytes_are_no_text() {
    let part = r#"{"type":"image_url","image_url":{"url":"data:AAAA"}}"#;
    let sound = r#"{"type":"input_audio","input_audio":{"data":"BBBB"}}"#;
    let found = facts(&format!(r#"{{"messages":[{{"role":"user","content":[{part},{{"type":"text"}},{sound}]}}]}}"#));
    assert_eq!(found.uses, uses::VISION | uses::AUDIO);
    assert_eq!(found.media_bytes, part.len() + sound.len());
}

#[test]
fn session_names_are_found_where_they_may_stand() {
    let body =
        r#"{"prompt_cache_key":"k","metadata":{"x":1,"session_id":"s"},"conversation":{"id":"c"},"input":["a","b"]}"#;
    let found = facts(body);
    assert_eq!(text(body, found.cache_key), "k");
    assert_eq!(text(body, found.session), "s");
    assert_eq!(text(body, found.conversation), "c");
    assert!(found.input_is_list);
    let plain = r#"{"conversation":"c2","prompt":"p"}"#;
    assert_eq!(text(plain, facts(plain).conversation), "c2");
    assert_eq!(text(plain, facts(plain).prompt), r#""p""#);
    assert!(facts(r#"{"conversation":null,"prompt_cache_key":5}"#).cache_key.is_empty());
}

#[test]
fn what_is_not_plain_is_left_to_a_parser() {
    for body in [
        r#"{"model":"a","model":"b"}"#,
        r#"{"mod\u0065l":"a"}"#,
        r#"{"model":"a\u0041"}"#,
        r#"{"max_tokens":1e3}"#,
        r#"{"max_tokens":-1}"#,
        r#"{"max_tokens":1234567890}"#,
        r#"{"guided_json":null}"#,
        "\u{feff}{}",
        "[]",
        "{} {}",
        "{",
        "",
        "null",
        r#"{"model":"a",}"#,
        r#"{"messages":[{"role":"user","role":"system"}]}"#,
    ] {
        assert_eq!(scan(body.as_bytes()), None, "{body}");
    }
    // Names that mean nothing to routing may stand twice, and any text may be escaped where it is not wanted.
    assert!(scan(br#"{"seed":1,"seed":2,"messages":[{"role":"user","content":"\u00e9\n"}]}"#).is_some());
}

#[test]
fn no_bytes_make_it_panic_and_every_span_lies_within_the_body() {
    let corpus: [&[u8]; 4] = [
        br#"{"model":"m","stream":true,"messages":[{"role":"user","content":[{"type":"image_url"}]}],"max_tokens":9}"#,
        br#"{"metadata":{"session_id":"s"},"text":{"format":{"type":"json_schema"}},"guided_x":[1,{"a":"\u0041"}]}"#,
        br#"{"prompt":["a",[1,2]],"input":{"a":-1.5e-7},"conversation":{"id":"c"},"tools":[ ]}"#,
        br#"{"a":[[[[[{"b":{}}]]]]],"functions":[1],"store":false,"reasoning":null}"#,
    ];
    let mut state: u64 = 0x5EED;
    let mut next = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % limit
    };
    let mut plain = 0;
    for round in 0..400_000 {
        let mut body = corpus[round % corpus.len()].to_vec();
        for _ in 0..next(5) {
            let at = next(body.len());
            match next(5) {
                0 => body[at] = next(256) as u8,
                1 => body.truncate(at + 1),
                2 => drop(body.remove(at)),
                3 => body.insert(at, b"{}[],:\"\\u0e-tfn \x00"[next(17)]),
                _ => {
                    let other = corpus[next(corpus.len())];
                    let start = next(other.len());
                    body.splice(at..at, other[start..].iter().copied());
                }
            }
            if body.is_empty() {
                break;
            }
        }
        let Some(found) = scan(&body) else { continue };
        plain += 1;
        let spans =
            [found.model, found.cache_key, found.conversation, found.session, found.prompt, found.input, found.user];
        for span in spans.iter().chain(&found.pieces) {
            assert!(span.start <= span.end && span.end <= body.len());
        }
    }
    // Else the loop above would say nothing.
    assert!(plain > 100_000, "{plain}");
}
