//! Static check of a bypass rule, for mistakes that do not depend on the request.
//!
//! CEL finds unknown names and wrong types only when it evaluates them, which may be never or on
//! the day of the sale. This module walks the whole expression instead. Names must be known, and
//! types must match as far as they are known. Loops run over lists in the rule and are not nested,
//! so the length of the rule bounds the cost of a request, not what a client sends.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators,
};

use super::values::{IN_NETWORK, Variables, parse_network};

/// Functions of one argument (or of a target and none) that turn one value into another.
const CONVERSIONS: [&str; 8] = [
    "bool", "bytes", "double", "dyn", "int", "string", "type", "uint",
];
/// Functions of a text with one text as argument.
const TEXT_PREDICATES: [&str; 3] = ["contains", "endsWith", "startsWith"];

/// Type of an expression's value, as far as it is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Bool,
    Text,
    Number,
    List,
    Headers,
    /// Type that is not known here; the trial evaluation may find a mistake.
    Any,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Bool => "true or false",
            Self::Text => "text",
            Self::Number => "a number",
            Self::List => "a list",
            Self::Headers => "the headers",
            Self::Any => "something",
        }
    }

    /// Returns the type of a value that has one type or the other.
    fn or(self, other: Self) -> Self {
        if self == other { self } else { Self::Any }
    }
}

/// Checks a rule. The messages name all its mistakes.
pub(super) fn check(rule: &IdedExpr) -> Result<(), Vec<String>> {
    let mut checker = Checker::default();
    let kind = checker.kind_of(rule);
    checker.expect(kind, Kind::Bool, "a rule");
    if checker.problems.is_empty() {
        Ok(())
    } else {
        Err(checker.problems)
    }
}

/// Most levels of an expression. Requests evaluate it on threads with small stacks.
const DEPTH_MAX: usize = 32;

/// Returns how many brackets of an expression are in each other, at most. Those in texts count too.
pub(super) fn brackets(expression: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for c in expression.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[derive(Default)]
struct Checker<'a> {
    problems: Vec<String>,
    /// Levels above the present expression.
    depth: usize,
    /// Variables of the present loop.
    in_scope: Vec<&'a str>,
}

impl<'a> Checker<'a> {
    fn problem(&mut self, message: String) -> Kind {
        if !self.problems.contains(&message) {
            self.problems.push(message);
        }
        Kind::Any
    }

    fn expect(&mut self, found: Kind, wanted: Kind, subject: &str) {
        if found != wanted && found != Kind::Any {
            let (wanted, found) = (wanted.name(), found.name());
            self.problem(format!("{subject} must be {wanted}, but this is {found}"));
        }
    }

    fn kind_of(&mut self, expression: &'a IdedExpr) -> Kind {
        if self.depth >= DEPTH_MAX {
            return self.problem(format!("more than {DEPTH_MAX} levels of operators"));
        }
        self.depth += 1;
        let kind = self.kind_of_here(expression);
        self.depth -= 1;
        kind
    }

    fn kind_of_here(&mut self, expression: &'a IdedExpr) -> Kind {
        match &expression.expr {
            Expr::Literal(literal) => kind_of_literal(literal),
            Expr::Ident(name) => self.kind_of_name(name),
            Expr::Select(select) => match self.kind_of(&select.operand) {
                _ if select.test => Kind::Bool,
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
            Expr::Struct(literal) => self.problem(format!("unknown type `{}`", literal.type_name)),
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
                    self.expect(kind, Kind::Bool, "each side of `&&`, `||` and `!`");
                }
                Kind::Bool
            }
            (operators::CONDITIONAL, _, [condition, then, otherwise]) => {
                self.expect(*condition, Kind::Bool, "the condition before `?`");
                then.or(*otherwise)
            }
            (operators::NOT_STRICTLY_FALSE, ..) => Kind::Bool,
            (operators::IN, _, [_, within]) => {
                if !matches!(within, Kind::List | Kind::Headers | Kind::Any) {
                    self.expect(*within, Kind::List, "the value after `in`");
                }
                Kind::Bool
            }
            (operators::INDEX, _, [of, _]) => match of {
                Kind::Headers => Kind::Text,
                Kind::List | Kind::Any => Kind::Any,
                kind => self.problem(format!("{} cannot be indexed", kind.name())),
            },
            (_, None, [left, right]) if is_comparison(name) => {
                self.compare(*left, *right);
                Kind::Bool
            }
            (_, None, [left, right]) if is_arithmetic(name) => left.or(*right),
            (operators::NEGATE, ..) => Kind::Number,
            (IN_NETWORK, None, [address, network]) => {
                self.expect(*address, Kind::Text, "the first argument of `in_network`");
                self.expect(*network, Kind::Text, "the second argument of `in_network`");
                self.check_network(&call.args);
                Kind::Bool
            }
            (_, Some(target), [argument]) if TEXT_PREDICATES.contains(&name) => {
                self.expect(target, Kind::Text, &format!("the target of `{name}`"));
                self.expect(*argument, Kind::Text, &format!("the argument of `{name}`"));
                Kind::Bool
            }
            ("size", None, &[of]) | ("size", Some(of), &[]) => {
                if matches!(of, Kind::Bool | Kind::Number | Kind::Headers) {
                    self.problem(format!("{} has no size", of.name()));
                }
                Kind::Number
            }
            (_, None, [_]) if CONVERSIONS.contains(&name) => match name {
                "string" => Kind::Text,
                "bool" => Kind::Bool,
                "int" | "uint" | "double" => Kind::Number,
                _ => Kind::Any,
            },
            _ => self.problem(format!(
                "no function `{name}` with these arguments; there are `{}`, `size`, \
                 `{IN_NETWORK}`, `has` and conversions",
                TEXT_PREDICATES.join("`, `")
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

    /// Checks a literal network of the rule now and not at the first request.
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
                "loops run over a list in the rule, as in \
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
        LiteralValue::Boolean(_) => Kind::Bool,
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
