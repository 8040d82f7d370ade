//! A tuple is not a parameter list: no function takes one. A struct gives the values a name.
//!
//! Promises: it sees every function with its full signature, in tests, traits and macros too.
//! Closures may take tuples. An alias of a tuple is not recognised unless its pattern shows it.

use anyhow::{Context, Result};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{FnArg, Ident, Pat, Signature, Token, Type};

use crate::repository::Repository;

pub(crate) fn check_tuple_parameters(repository: &Repository) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (name, text) in repository.texts().filter(|(name, _)| name.ends_with(".rs")) {
        wrong.extend(find_tuple_parameters(name, text)?);
    }
    Ok(wrong)
}

fn find_tuple_parameters(file: &str, text: &str) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let mut visit = |signature: &Signature| {
        let function = &signature.ident;
        let parameters = signature.inputs.iter().enumerate();
        let names = parameters.filter_map(|(index, parameter)| tuple_name(parameter, index));
        wrong.extend(names.map(|name| {
            format!("{file}: `{function}` takes the tuple `{name}`: use a struct or two parameters")
        }));
    };
    let read = |input: ParseStream<'_>| visit_functions(input, &mut visit);
    read.parse_str(text).with_context(|| format!("{file} cannot be parsed"))?;
    Ok(wrong)
}

/// Returns the name of a parameter that is a tuple.
fn tuple_name(parameter: &FnArg, index: usize) -> Option<String> {
    let FnArg::Typed(typed) = parameter else { return None };
    let is_tuple = is_tuple_pattern(&typed.pat) || is_tuple_type(&typed.ty);
    is_tuple.then(|| parameter_name(&typed.pat, index))
}

/// Goes through all tokens, in groups too, so that functions in bodies and in macros are seen.
fn visit_functions(input: ParseStream<'_>, visit: &mut dyn FnMut(&Signature)) -> syn::Result<()> {
    while !input.is_empty() {
        if input.peek(Token![fn]) && input.peek2(Ident::peek_any) {
            // A pattern of a macro may look like a function and have no signature.
            if let Ok(signature) = input.fork().parse() {
                visit(&signature);
            }
            input.parse::<Token![fn]>()?;
            continue;
        }
        let inner;
        if input.peek(syn::token::Brace) {
            syn::braced!(inner in input);
        } else if input.peek(syn::token::Paren) {
            syn::parenthesized!(inner in input);
        } else if input.peek(syn::token::Bracket) {
            syn::bracketed!(inner in input);
        } else {
            skip_token(input)?;
            continue;
        }
        visit_functions(&inner, visit)?;
    }
    Ok(())
}

fn skip_token(input: ParseStream<'_>) -> syn::Result<()> {
    input.step(|cursor| match cursor.token_tree() {
        Some((_, rest)) => Ok(((), rest)),
        None => Err(cursor.error("a token")),
    })
}

fn is_tuple_pattern(pattern: &Pat) -> bool {
    match pattern {
        Pat::Tuple(tuple) => tuple.elems.len() > 1,
        Pat::Reference(reference) => is_tuple_pattern(&reference.pat),
        Pat::Paren(inner) => is_tuple_pattern(&inner.pat),
        _ => false,
    }
}

fn is_tuple_type(ty: &Type) -> bool {
    match ty {
        Type::Tuple(tuple) => tuple.elems.len() > 1,
        Type::Reference(reference) => is_tuple_type(&reference.elem),
        Type::Paren(inner) => is_tuple_type(&inner.elem),
        Type::Group(inner) => is_tuple_type(&inner.elem),
        _ => false,
    }
}

/// Returns the names that a pattern binds, or the number of the parameter if it binds none.
fn parameter_name(pattern: &Pat, index: usize) -> String {
    match pattern {
        Pat::Ident(named) => named.ident.to_string(),
        Pat::Reference(reference) => parameter_name(&reference.pat, index),
        Pat::Paren(inner) => parameter_name(&inner.pat, index),
        Pat::Tuple(tuple) => {
            let names: Vec<String> =
                tuple.elems.iter().map(|each| parameter_name(each, index)).collect();
            format!("({})", names.join(", "))
        }
        Pat::Wild(_) => "_".to_owned(),
        _ => format!("parameter {}", index + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        find_tuple_parameters("a.rs", text).unwrap()
    }

    #[test]
    fn a_tuple_is_named_with_its_file_function_and_parameter() {
        assert_eq!(
            found("fn draw(at: u8, size: (u16, u16)) {}"),
            ["a.rs: `draw` takes the tuple `size`: use a struct or two parameters"]
        );
        assert_eq!(
            found("fn draw((mut x, _): Place) {}"),
            ["a.rs: `draw` takes the tuple `(x, _)`: use a struct or two parameters"]
        );
        assert_eq!(found("fn both(one: (u8, u8), other: (u8, u8)) {}").len(), 2);
    }

    #[test]
    fn a_tuple_is_found_wherever_a_function_is() {
        for text in [
            "fn a(b: &(u8, u8)) {}",
            "fn a(b: &'static mut (u8, u8)) {}",
            "fn a(b: ((u8, u8))) {}",
            "fn a(&(b, c): &B) {}",
            "async fn a<T: Fn((u8, u8))>(b: (T, T)) where T: Copy {}",
            "impl A { fn a(&self, b: (u8, u8)) {} }",
            "trait A { fn a(&self, b: (u8, u8)); }",
            "#[cfg(test)] mod tests { #[test] fn a() { fn b(c: (u8, u8)) {} } }",
            "fn a() { let b = || { fn c(d: (u8, u8)) {} }; }",
            "proptest! { fn a() { fn b(c: (u8, u8)) {} } }",
            "macro_rules! m { ($n:ident) => { fn a(b: (u8, u8)) {} } }",
        ] {
            assert_eq!(found(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn what_is_no_tuple_of_two_is_fine() {
        for text in [
            "fn a(b: (), c: (u8,), d: (u8), e: [u8; 2]) {}",
            "fn a(b: &(dyn A + B), c: &[(u8, u8)], d: Option<(u8, u8)>) {}",
            "fn a(self, b: impl Fn((u8, u8))) -> (u8, u8) { (1, 2) }",
            "fn a() { let b = |(c, d): (u8, u8)| c + d; }",
            "struct A { b: fn((u8, u8)) }",
            "// fn a(b: (u8, u8)) {}\nconst A: &str = \"fn a(b: (u8, u8)) {}\";",
            "macro_rules! m { ($n:ident) => { fn $n(b: u8) {} fn a($b: $c) {} } }",
            "fn a(Place(b, c): Place, Size { d, e }: Size) {}",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
