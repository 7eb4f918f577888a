//! What is wrong with a rule, whatever the request?
//!
//! CEL finds unknown names and wrong kinds when it meets them, which may be never, or on the one
//! day that matters. This walks the whole expression instead: names must be known, kinds must fit
//! as far as they can be told, and loops run over lists that stand in the rule, one deep, so that
//! what a request costs is bounded by the length of the rule and not by what a client sends.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators,
};

use super::values::{IN_NETWORK, Variables, parse_network};

/// Functions of one argument (or of a target and none) that turn one value into another.
const CONVERSIONS: [&str; 8] = [
    "bool", "bytes", "double", "dyn", "int", "string", "type", "uint",
];
/// What a text can be asked for.
const TEXT_QUESTIONS: [&str; 3] = ["contains", "endsWith", "startsWith"];

/// What an expression gives, as far as it can be told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    YesNo,
    Text,
    Number,
    List,
    Headers,
    /// Cannot be told; the trial evaluation may.
    Any,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::YesNo => "true or false",
            Self::Text => "text",
            Self::Number => "a number",
            Self::List => "a list",
            Self::Headers => "the headers",
            Self::Any => "something",
        }
    }

    /// What it is if it can be either.
    fn or(self, other: Self) -> Self {
        if self == other { self } else { Self::Any }
    }
}

/// Checks a rule; the messages say everything that is wrong.
pub(super) fn check(rule: &IdedExpr) -> Result<(), Vec<String>> {
    let mut checker = Checker::default();
    let kind = checker.kind_of(rule);
    checker.expect(kind, Kind::YesNo, "a rule");
    if checker.problems.is_empty() {
        Ok(())
    } else {
        Err(checker.problems)
    }
}

#[derive(Default)]
struct Checker<'a> {
    problems: Vec<String>,
    /// Variables of the loop that we are in.
    in_scope: Vec<&'a str>,
}

impl<'a> Checker<'a> {
    fn problem(&mut self, message: String) -> Kind {
        if !self.problems.contains(&message) {
            self.problems.push(message);
        }
        Kind::Any
    }

    fn expect(&mut self, found: Kind, wanted: Kind, whose: &str) {
        if found != wanted && found != Kind::Any {
            let (wanted, found) = (wanted.name(), found.name());
            self.problem(format!("{whose} must be {wanted}, but this is {found}"));
        }
    }

    fn kind_of(&mut self, expression: &'a IdedExpr) -> Kind {
        match &expression.expr {
            Expr::Literal(literal) => kind_of_literal(literal),
            Expr::Ident(name) => self.kind_of_name(name),
            Expr::Select(select) => match self.kind_of(&select.operand) {
                _ if select.test => Kind::YesNo,
                Kind::Headers => Kind::Text,
                Kind::Any => Kind::Any,
                kind => self.problem(format!("{} has no field `{}`", kind.name(), select.field)),
            },
            Expr::Call(call) => self.kind_of_call(call),
            Expr::List(list) => {
                for element in &list.elements {
                    self.kind_of(element);
                }
                Kind::List
            }
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.kind_of(&entry.key);
                        self.kind_of(&entry.value);
                    }
                }
                Kind::Any
            }
            Expr::Comprehension(comprehension) => self.kind_of_loop(comprehension),
            Expr::Struct(made) => self.problem(format!("unknown type `{}`", made.type_name)),
            Expr::Unspecified => self.problem("the rule is empty".to_owned()),
        }
    }

    fn kind_of_name(&mut self, name: &'a str) -> Kind {
        if Variables::TEXTS.contains(&name) {
            Kind::Text
        } else if name == Variables::HEADERS {
            Kind::Headers
        } else if self.in_scope.contains(&name) || CONVERSIONS.contains(&name) {
            // The names of conversions are also names of types: `type(x) == string`.
            Kind::Any
        } else {
            let known = Variables::TEXTS.join("`, `");
            self.problem(format!(
                "unknown variable `{name}`; there are `{known}` and `{}`",
                Variables::HEADERS
            ))
        }
    }

    fn kind_of_call(&mut self, call: &'a CallExpr) -> Kind {
        let target = call.target.as_deref().map(|target| self.kind_of(target));
        let kinds: Vec<_> = call
            .args
            .iter()
            .map(|argument| self.kind_of(argument))
            .collect();
        let name = call.func_name.as_str();
        match (name, target, &*kinds) {
            (operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT, _, _) => {
                for kind in kinds {
                    self.expect(kind, Kind::YesNo, "each side of `&&`, `||` and `!`");
                }
                Kind::YesNo
            }
            (operators::CONDITIONAL, _, [condition, then, otherwise]) => {
                self.expect(*condition, Kind::YesNo, "what stands before `?`");
                then.or(*otherwise)
            }
            (operators::NOT_STRICTLY_FALSE, ..) => Kind::YesNo,
            (operators::IN, _, [_, within]) => {
                if !matches!(within, Kind::List | Kind::Headers | Kind::Any) {
                    self.expect(*within, Kind::List, "what stands after `in`");
                }
                Kind::YesNo
            }
            (operators::INDEX, _, [of, _]) => match of {
                Kind::Headers => Kind::Text,
                Kind::List | Kind::Any => Kind::Any,
                kind => self.problem(format!("{} cannot be indexed", kind.name())),
            },
            (_, None, [left, right]) if is_comparison(name) => {
                self.compare(*left, *right);
                Kind::YesNo
            }
            (_, None, [left, right]) if is_arithmetic(name) => left.or(*right),
            (operators::NEGATE, ..) => Kind::Number,
            (IN_NETWORK, None, [address, network]) => {
                self.expect(*address, Kind::Text, "the first argument of `in_network`");
                self.expect(*network, Kind::Text, "the second argument of `in_network`");
                self.check_network(&call.args);
                Kind::YesNo
            }
            (_, Some(target), [argument]) if TEXT_QUESTIONS.contains(&name) => {
                self.expect(target, Kind::Text, &format!("what is asked for `{name}`"));
                self.expect(*argument, Kind::Text, &format!("the argument of `{name}`"));
                Kind::YesNo
            }
            ("size", None, &[of]) | ("size", Some(of), &[]) => {
                if matches!(of, Kind::YesNo | Kind::Number | Kind::Headers) {
                    self.problem(format!("{} has no size", of.name()));
                }
                Kind::Number
            }
            (_, None, [_]) if CONVERSIONS.contains(&name) => match name {
                "string" => Kind::Text,
                "bool" => Kind::YesNo,
                "int" | "uint" | "double" => Kind::Number,
                _ => Kind::Any,
            },
            _ => self.problem(format!(
                "no function `{name}` that is called like this; there are `{}`, `size`, \
                 `{IN_NETWORK}`, `has` and conversions",
                TEXT_QUESTIONS.join("`, `")
            )),
        }
    }

    fn compare(&mut self, left: Kind, right: Kind) {
        let is_known = left != Kind::Any && right != Kind::Any;
        if is_known && left != right {
            let (left, right) = (left.name(), right.name());
            self.problem(format!("{left} cannot be compared with {right}"));
        }
    }

    /// A network that stands in the rule is checked here and not at the first request.
    fn check_network(&mut self, arguments: &[IdedExpr]) {
        let literal = arguments.get(1).map(|argument| &argument.expr);
        if let Some(Expr::Literal(LiteralValue::String(text))) = literal
            && parse_network(text.inner()).is_none()
        {
            self.problem(format!("`{}` is no network", text.inner()));
        }
    }

    fn kind_of_loop(&mut self, comprehension: &'a ComprehensionExpr) -> Kind {
        if !self.in_scope.is_empty() {
            return self.problem("a loop cannot stand inside another".to_owned());
        }
        let Expr::List(ListExpr { .. }) = &comprehension.iter_range.expr else {
            return self.problem(
                "loops run over a list that stands in the rule, as in \
                 [\"/a\", \"/b\"].exists(prefix, path.startsWith(prefix))"
                    .to_owned(),
            );
        };
        self.kind_of(&comprehension.iter_range);
        self.kind_of(&comprehension.accu_init);
        self.in_scope.push(&comprehension.iter_var);
        self.in_scope.extend(comprehension.iter_var2.as_deref());
        self.in_scope.push(&comprehension.accu_var);
        self.kind_of(&comprehension.loop_cond);
        self.kind_of(&comprehension.loop_step);
        let kind = self.kind_of(&comprehension.result);
        self.in_scope.clear();
        kind
    }
}

const fn kind_of_literal(literal: &LiteralValue) -> Kind {
    match literal {
        LiteralValue::Boolean(_) => Kind::YesNo,
        LiteralValue::String(_) => Kind::Text,
        LiteralValue::Double(_) | LiteralValue::Int(_) | LiteralValue::UInt(_) => Kind::Number,
        LiteralValue::Bytes(_) | LiteralValue::Null => Kind::Any,
    }
}

fn is_comparison(name: &str) -> bool {
    [
        operators::EQUALS,
        operators::NOT_EQUALS,
        operators::LESS,
        operators::LESS_EQUALS,
        operators::GREATER,
        operators::GREATER_EQUALS,
    ]
    .contains(&name)
}

fn is_arithmetic(name: &str) -> bool {
    [
        operators::ADD,
        operators::SUBSTRACT,
        operators::MULTIPLY,
        operators::DIVIDE,
        operators::MODULO,
    ]
    .contains(&name)
}
