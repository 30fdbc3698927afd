import type { Position } from '../machine/position.ts';
import type { Value } from '../values/value.ts';
import { FunctionScope } from './scope.ts';
import { ScriptSyntaxError } from './syntax-error.ts';
import type { Argument, Comprehension, Expression, FunctionParts, Name, Parameter, Statement } from './tree.ts';

/** The variables of a script. */
export interface ResolvedScript {
  readonly scope: FunctionScope;
  /** Names of the global variables by slot. */
  readonly globals: readonly string[];
}

/**
 * Resolves each name, and sets the result in the tree. A name is local to the function that sets it anywhere. Functions see all
 * global names; the script itself only those that were set above, as it may redefine a predeclared name. Throws ScriptSyntaxError.
 */
export function resolve(statements: readonly Statement[], constants: ReadonlyMap<string, Value>): ResolvedScript {
  const resolver = new Resolver(constants);
  const scope = new FunctionScope(undefined);
  resolver.statements(statements, scope, { inFunction: false, loops: 0, nested: false });
  resolver.finish();
  return { scope, globals: [...resolver.globals.keys()] };
}

interface Around {
  readonly inFunction: boolean;
  readonly loops: number;
  /** Inside of an `if` or a loop. */
  readonly nested: boolean;
}

class Resolver {
  readonly globals = new Map<string, number>();
  private readonly constants: ReadonlyMap<string, Value>;
  /** Names in functions that are not variables of functions: they are resolved at the end. */
  private readonly pending: Name[] = [];

  constructor(constants: ReadonlyMap<string, Value>) {
    this.constants = constants;
  }

  finish(): void {
    for (const name of this.pending) this.useGlobal(name);
  }

  statements(statements: readonly Statement[], scope: FunctionScope, around: Around): void {
    for (const statement of statements) this.statement(statement, scope, around);
  }

  private statement(statement: Statement, scope: FunctionScope, around: Around): void {
    const inside = { ...around, nested: true };
    switch (statement.kind) {
      case 'expression':
        this.expression(statement.value, scope);
        break;
      case 'assign':
        this.expression(statement.value, scope);
        this.target(statement.target, scope);
        break;
      case 'augment':
        if (statement.target.kind === 'tuple' || statement.target.kind === 'list')
          fail(statement.target.position, `can't use ${statement.target.kind} expression in augmented assignment`);
        this.expression(statement.value, scope);
        this.target(statement.target, scope);
        break;
      case 'if':
        for (const { condition, body } of statement.branches) {
          this.expression(condition, scope);
          this.statements(body, scope, inside);
        }
        this.statements(statement.otherwise, scope, inside);
        break;
      case 'for':
        this.expression(statement.value, scope);
        this.target(statement.target, scope);
        this.statements(statement.body, scope, { ...inside, loops: around.loops + 1 });
        break;
      case 'while':
        this.expression(statement.condition, scope);
        this.statements(statement.body, scope, { ...inside, loops: around.loops + 1 });
        break;
      case 'return':
        if (!around.inFunction) fail(statement.position, 'return statement not within a function');
        if (statement.value !== undefined) this.expression(statement.value, scope);
        break;
      case 'break':
      case 'continue':
        if (around.loops === 0) fail(statement.position, `${statement.kind} not in a loop`);
        break;
      case 'def':
        this.bind(statement.name, scope);
        this.function(statement.function, scope);
        break;
      case 'load':
        if (around.inFunction) fail(statement.position, 'load statement within a function');
        if (around.nested) fail(statement.position, 'load statement within a conditional or a loop');
        for (const { local, exported } of statement.names) {
          if (exported.startsWith('_'))
            fail(local.position, `load: names with leading underscores are not exported: ${exported}`);
          this.bind(local, scope);
        }
        break;
      case 'pass':
    }
  }

  /** A place in an assignment. */
  private target(target: Expression, scope: FunctionScope): void {
    if (target.kind === 'name') this.bind(target, scope);
    else if (target.kind === 'tuple' || target.kind === 'list')
      for (const item of target.items) this.target(item, scope);
    else if (target.kind === 'index' || target.kind === 'attribute') this.expression(target, scope);
    else fail(target.position, `can't assign to ${TARGET_NAMES[target.kind] ?? 'expression'}`);
  }

  private bind(name: Name, scope: FunctionScope): void {
    if (!scope.isGlobal) {
      name.binding = scope.declare(name.name);
      return;
    }
    const slot = this.globals.get(name.name) ?? this.globals.size;
    this.globals.set(name.name, slot);
    name.binding = { scope: 'global', name: name.name, slot };
  }

  private use(name: Name, scope: FunctionScope): void {
    const binding = scope.lookup(name.name);
    if (binding !== undefined) name.binding = binding;
    else if (scope.isGlobal) this.useGlobal(name);
    else this.pending.push(name);
  }

  private useGlobal(name: Name): void {
    const slot = this.globals.get(name.name);
    const value = this.constants.get(name.name);
    if (slot !== undefined) name.binding = { scope: 'global', name: name.name, slot };
    else if (value !== undefined) name.binding = { scope: 'constant', name: name.name, value };
    else fail(name.position, `undefined: ${name.name}`);
  }

  private expression(expression: Expression, scope: FunctionScope): void {
    switch (expression.kind) {
      case 'name':
        this.use(expression, scope);
        break;
      case 'constant':
        break;
      case 'list':
      case 'tuple':
        for (const item of expression.items) this.expression(item, scope);
        break;
      case 'dict':
        for (const { key, value } of expression.entries) {
          this.expression(key, scope);
          this.expression(value, scope);
        }
        break;
      case 'comprehension':
        this.comprehension(expression, scope);
        break;
      case 'and':
      case 'or':
      case 'binary':
        this.expression(expression.left, scope);
        this.expression(expression.right, scope);
        break;
      case 'if':
        this.expression(expression.condition, scope);
        this.expression(expression.then, scope);
        this.expression(expression.otherwise, scope);
        break;
      case 'call':
        this.expression(expression.callee, scope);
        checkArguments(expression.args);
        for (const { value } of expression.args) this.expression(value, scope);
        break;
      case 'index':
        this.expression(expression.operand, scope);
        this.expression(expression.index, scope);
        break;
      case 'slice':
        for (const part of [expression.operand, expression.start, expression.stop, expression.step])
          if (part !== undefined) this.expression(part, scope);
        break;
      case 'lambda':
        this.function(expression.function, scope);
        break;
      default:
        this.expression(expression.operand, scope);
    }
  }

  private comprehension({ key, body, clauses }: Comprehension, scope: FunctionScope): void {
    // The operand of the first loop is outside of the comprehension.
    const [first, ...rest] = clauses;
    if (first !== undefined) this.expression(first.value, scope);
    scope.openBlock();
    if (first?.target !== undefined) this.target(first.target, scope);
    for (const { target, value } of rest) {
      this.expression(value, scope);
      if (target !== undefined) this.target(target, scope);
    }
    if (key !== undefined) this.expression(key, scope);
    this.expression(body, scope);
    scope.closeBlock();
  }

  private function(parts: FunctionParts, outer: FunctionScope): void {
    checkParameters(parts.parameters);
    for (const { default: value } of parts.parameters) if (value !== undefined) this.expression(value, outer);
    const scope = new FunctionScope(outer);
    parts.scope = scope;
    for (const { kind, name } of slotOrder(parts.parameters))
      if (kind !== 'star') name.binding = scope.declare(name.name);
    declareAll(parts.body, scope);
    this.statements(parts.body, scope, { inFunction: true, loops: 0, nested: false });
  }
}

const TARGET_NAMES: Readonly<Record<string, string>> = { call: 'call expression', comprehension: 'comprehension' };

function fail(position: Position, message: string): never {
  throw new ScriptSyntaxError(position, message);
}

/** Parameters in the order of their slots: positional ones, keyword-only ones, `*args`, `**kwargs`. */
export function slotOrder(parameters: readonly Parameter[]): Parameter[] {
  const star = parameters.findIndex(({ kind }) => kind === 'star' || kind === 'rest');
  const plain = parameters.filter(({ kind }) => kind === 'plain');
  return [
    ...plain.filter((parameter) => star === -1 || parameters.indexOf(parameter) < star),
    ...plain.filter((parameter) => star !== -1 && parameters.indexOf(parameter) > star),
    ...parameters.filter(({ kind }) => kind === 'rest'),
    ...parameters.filter(({ kind }) => kind === 'namedRest'),
  ];
}

function checkParameters(parameters: readonly Parameter[]): void {
  const names = new Set<string>();
  let optional = false;
  let star: Parameter | undefined;
  let namedRest: Parameter | undefined;
  for (const [at, parameter] of parameters.entries()) {
    const { kind, name, position } = parameter;
    if (namedRest !== undefined) fail(position, `no parameter may follow **${namedRest.name.name}`);
    if (kind === 'plain') {
      if (parameter.default !== undefined) optional = true;
      else if (optional && star === undefined) fail(position, 'required parameter may not follow optional');
    } else if (kind === 'namedRest') namedRest = parameter;
    else {
      if (star !== undefined) fail(position, 'multiple * parameters not allowed');
      star = parameter;
      if (kind === 'star' && parameters[at + 1]?.kind !== 'plain')
        fail(position, 'bare * must be followed by keyword-only parameters');
    }
    if (names.has(name.name)) fail(name.position, `duplicate parameter: ${name.name}`);
    names.add(name.name);
  }
}

function checkArguments(args: readonly Argument[]): void {
  const names = new Set<string>();
  let last: Argument['kind'] = 'positional';
  const rests = new Set<Argument['kind']>();
  for (const { kind, name = '', position } of args) {
    if (kind === 'positional' && last !== 'positional')
      fail(position, `positional argument may not follow ${KINDS[last]}`);
    if (kind === 'named') {
      if (last === 'rest' || last === 'namedRest') fail(position, `keyword argument may not follow ${KINDS[last]}`);
      if (names.has(name)) fail(position, `keyword argument "${name}" is repeated`);
      names.add(name);
    }
    if (kind === 'rest' && last === 'namedRest') fail(position, '*args may not follow **kwargs');
    if ((kind === 'rest' || kind === 'namedRest') && rests.has(kind))
      fail(position, `multiple ${KINDS[kind]} not allowed`);
    rests.add(kind);
    last = kind;
  }
}

const KINDS = { positional: 'positional', named: 'named', rest: '*args', namedRest: '**kwargs' } as const;

/** Declares what the statements of a function set, except in nested functions and comprehensions. */
function declareAll(statements: readonly Statement[], scope: FunctionScope): void {
  for (const statement of statements) {
    switch (statement.kind) {
      case 'assign':
      case 'augment':
        declareTarget(statement.target, scope);
        break;
      case 'def':
        scope.declare(statement.name.name);
        break;
      case 'for':
        declareTarget(statement.target, scope);
        declareAll(statement.body, scope);
        break;
      case 'while':
        declareAll(statement.body, scope);
        break;
      case 'if':
        for (const { body } of statement.branches) declareAll(body, scope);
        declareAll(statement.otherwise, scope);
        break;
      default:
    }
  }
}

function declareTarget(target: Expression, scope: FunctionScope): void {
  if (target.kind === 'name') scope.declare(target.name);
  else if (target.kind === 'tuple' || target.kind === 'list')
    for (const item of target.items) declareTarget(item, scope);
}
