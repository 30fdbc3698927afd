import type { Position } from '../machine/position.ts';
import type { Value } from '../values/value.ts';
import type { Binding, FunctionScope } from './scope.ts';

interface At {
  readonly position: Position;
}

/** A use of a name, or its place in an assignment. The resolver sets what it refers to. */
export interface Name extends At {
  readonly kind: 'name';
  readonly name: string;
  binding?: Binding;
}

export type BinaryOperator =
  | '+'
  | '-'
  | '*'
  | '/'
  | '//'
  | '%'
  | '&'
  | '|'
  | '^'
  | '<<'
  | '>>'
  | '=='
  | '!='
  | '<'
  | '>'
  | '<='
  | '>='
  | 'in'
  | 'not in';

export interface Argument extends At {
  /** `f(a)`, `f(name=a)`, `f(*a)`, `f(**a)`. */
  readonly kind: 'positional' | 'named' | 'rest' | 'namedRest';
  readonly name?: string;
  readonly value: Expression;
}

export interface Clause extends At {
  readonly kind: 'for' | 'if';
  /** The target of the loop; absent for `if`. */
  readonly target?: Expression;
  readonly value: Expression;
}

export interface Parameter extends At {
  /** `*` without a name only ends the positional ones. */
  readonly kind: 'plain' | 'rest' | 'namedRest' | 'star';
  readonly name: Name;
  readonly default?: Expression;
}

export interface FunctionParts extends At {
  readonly name: string;
  readonly parameters: readonly Parameter[];
  readonly body: readonly Statement[];
  scope?: FunctionScope;
}

export interface Comprehension extends At {
  readonly kind: 'comprehension';
  /** A dict comprehension has a key. */
  readonly key?: Expression;
  readonly body: Expression;
  readonly clauses: readonly Clause[];
}

export type Expression =
  | Name
  | (At & { readonly kind: 'constant'; readonly value: Value })
  | (At & { readonly kind: 'list' | 'tuple'; readonly items: readonly Expression[] })
  | (At & {
      readonly kind: 'dict';
      readonly entries: readonly { key: Expression; value: Expression; position: Position }[];
    })
  | Comprehension
  | (At & { readonly kind: 'not' | '-' | '+' | '~'; readonly operand: Expression })
  | (At & { readonly kind: 'and' | 'or'; readonly left: Expression; readonly right: Expression })
  | (At & {
      readonly kind: 'binary';
      readonly operator: BinaryOperator;
      readonly left: Expression;
      readonly right: Expression;
    })
  | (At & {
      readonly kind: 'if';
      readonly condition: Expression;
      readonly then: Expression;
      readonly otherwise: Expression;
    })
  | (At & { readonly kind: 'call'; readonly callee: Expression; readonly args: readonly Argument[] })
  | (At & { readonly kind: 'index'; readonly operand: Expression; readonly index: Expression })
  | (At & {
      readonly kind: 'slice';
      readonly operand: Expression;
      readonly start?: Expression;
      readonly stop?: Expression;
      readonly step?: Expression;
    })
  | (At & { readonly kind: 'attribute'; readonly operand: Expression; readonly name: string })
  | (At & { readonly kind: 'lambda'; readonly function: FunctionParts });

export type Statement =
  | (At & { readonly kind: 'expression'; readonly value: Expression })
  | (At & { readonly kind: 'assign'; readonly target: Expression; readonly value: Expression })
  | (At & {
      readonly kind: 'augment';
      readonly operator: BinaryOperator;
      readonly target: Expression;
      readonly value: Expression;
    })
  | (At & {
      readonly kind: 'if';
      readonly branches: readonly { condition: Expression; body: readonly Statement[] }[];
      readonly otherwise: readonly Statement[];
    })
  | (At & {
      readonly kind: 'for';
      readonly target: Expression;
      readonly value: Expression;
      readonly body: readonly Statement[];
    })
  | (At & { readonly kind: 'while'; readonly condition: Expression; readonly body: readonly Statement[] })
  | (At & { readonly kind: 'return'; readonly value?: Expression })
  | (At & { readonly kind: 'break' | 'continue' | 'pass' })
  | (At & { readonly kind: 'def'; readonly name: Name; readonly function: FunctionParts })
  | (At & {
      readonly kind: 'load';
      readonly module: string;
      readonly names: readonly { readonly local: Name; readonly exported: string }[];
    });
