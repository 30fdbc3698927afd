import type { CelEnv, CelFunc, CelType } from '@bufbuild/cel';
import { isSluiceError, messageOf } from '../foundation/sluice-error.ts';
import { matchesPattern } from '../foundation/text/linear-regex.ts';
import { type Ast, type AstProblem, childrenOf, TYPE_NAMES } from './ast.ts';
import {
  canBe,
  canEqual,
  DYN,
  isUnknown,
  join,
  joinAll,
  listOf,
  mapOf,
  type StaticType,
  scalar,
  typeName,
} from './static-type.ts';

/** Types of the variables of an expression, and what its result must be. */
export interface Typing {
  readonly variables: Readonly<Record<string, StaticType>>;
  readonly result?: 'string' | 'bool';
}

type Functions = CelEnv['funcs'];
type Scope = ReadonlyMap<string, StaticType>;

const BOOL = scalar('bool');
const RESULTS = { string: 'a text', bool: 'true or false' } as const;

/**
 * The first error of types in an expression, of all its branches; undefined if there is none. Functions are those of the evaluator, and messages are
 * its messages. What a type leaves open, as values of JSON do, is no error. Each node is visited once; the caller limits their number and depth.
 */
export function checkTypes(root: Ast, functions: Functions, { variables, result }: Typing): AstProblem | undefined {
  const checker = new TypeChecker(functions, testedPaths(root));
  const scope = new Map(Object.entries(variables));
  const type = checker.typeOf(root, scope);
  if (checker.problem === undefined && result !== undefined) checker.expectResult(root, type, result);
  return checker.problem;
}

class TypeChecker {
  readonly #functions: Functions;
  readonly #tested: ReadonlySet<string>;
  readonly #types = new Map<Ast, StaticType>();
  problem: AstProblem | undefined;

  constructor(functions: Functions, tested: ReadonlySet<string>) {
    this.#functions = functions;
    this.#tested = tested;
  }

  typeOf(node: Ast, scope: Scope): StaticType {
    const type = this.#read(node, scope);
    this.#types.set(node, type);
    return type;
  }

  /** Each branch of a condition must have the type of the result. */
  expectResult(node: Ast, type: StaticType, wanted: 'string' | 'bool'): void {
    const { exprKind } = node;
    if (exprKind.case === 'callExpr' && exprKind.value.function === '_?_:_')
      for (const branch of exprKind.value.args.slice(1))
        this.expectResult(branch, this.#types.get(branch) ?? DYN, wanted);
    else if (!canBe(type, wanted)) this.#refuse(node, `gives ${typeName(type)}, expected ${RESULTS[wanted]}`);
  }

  #read(node: Ast, scope: Scope): StaticType {
    const { exprKind } = node;
    switch (exprKind.case) {
      case 'constExpr':
        return constantType(exprKind.value.constantKind.case);
      case 'identExpr':
        return scope.get(exprKind.value.name) ?? (TYPE_NAMES.has(exprKind.value.name) ? typeOfName(node) : DYN);
      case 'selectExpr':
        return this.#select(node, exprKind.value, scope);
      case 'listExpr':
        return listOf(joinAll(exprKind.value.elements.map((element) => this.typeOf(element, scope))));
      case 'structExpr': {
        const entries = exprKind.value.entries.map(({ keyKind, value }) => [
          keyKind.case === 'mapKey' ? this.typeOf(keyKind.value, scope) : scalar('string'),
          value === undefined ? DYN : this.typeOf(value, scope),
        ]);
        if (exprKind.value.messageName !== '') return DYN;
        return mapOf(joinAll(entries.map(([key = DYN]) => key)), joinAll(entries.map(([, value = DYN]) => value)));
      }
      case 'callExpr':
        return this.#call(node, exprKind.value, scope);
      case 'comprehensionExpr':
        return this.#comprehension(node, exprKind.value, scope);
      default:
        return DYN;
    }
  }

  #select(node: Ast, { operand, field, testOnly }: Select, scope: Scope): StaticType {
    const type = operand === undefined ? DYN : this.typeOf(operand, scope);
    if (testOnly) return BOOL;
    return this.#field(node, type, field);
  }

  /** The type of a field, or of an entry with a constant key. */
  #field(node: Ast, type: StaticType, field: string): StaticType {
    if (type === DYN || isUnknown(type)) return DYN;
    const { fields, map } = type;
    const own = fields !== undefined && Object.hasOwn(fields, field) ? fields[field] : undefined;
    const found = [own, map?.value].filter((one) => one !== undefined);
    if (found.length > 0) return joinAll(found);
    // Where the expression looks whether it exists, its absence is no error.
    const path = fields === undefined ? undefined : pathOf(node);
    if (path !== undefined && this.#tested.has(path)) return DYN;
    const known =
      fields === undefined ? `${typeName(type)} has no fields` : `known are ${Object.keys(fields).join(', ')}`;
    return this.#refuse(node, `field not found: ${field}; ${known}`);
  }

  #call(node: Ast, { function: name, target, args }: Call, scope: Scope): StaticType {
    const receiver = target === undefined ? undefined : this.typeOf(target, scope);
    const types = args.map((arg) => this.typeOf(arg, scope));
    const [first = DYN, second = DYN, third = DYN] = types;
    switch (name) {
      case '_?_:_':
        if (!canBe(first, 'bool'))
          return this.#refuse(args[0] ?? node, `type mismatch: expected bool, got ${typeName(first)}`);
        return join(second, third);
      case '_&&_':
      case '_||_':
        for (const [index, type] of types.entries())
          if (!canBe(type, 'bool'))
            return this.#refuse(args[index] ?? node, `type mismatch: expected bool, got ${typeName(type)}`);
        return BOOL;
      case '@not_strictly_false':
        return BOOL;
      case '_[_]':
        return this.#entry(node, first, second, args[1]);
      case '_==_':
      case '_!=_':
        return canEqual(first, second) ? BOOL : this.#noOverload(node, name, undefined, types);
      case '_?._':
      case '_[?_]':
        return DYN;
      default:
        return this.#overload(node, name, receiver, types, args);
    }
  }

  #entry(node: Ast, type: StaticType, index: StaticType, key: Ast | undefined): StaticType {
    if (type === DYN || isUnknown(type)) return DYN;
    const { list, map, fields } = type;
    const isNumber = ['int', 'uint', 'double'].some((name) => canBe(index, name));
    const text = key === undefined ? undefined : constantText(key);
    if (fields !== undefined && text !== undefined) return this.#field(node, type, text);
    const found = [
      ...(list !== undefined && isNumber ? [list] : []),
      ...(map !== undefined && canEqual(map.key, index) ? [map.value] : []),
      ...(fields !== undefined && canBe(index, 'string') ? Object.values(fields) : []),
    ];
    return found.length === 0 ? this.#noOverload(node, '_[_]', undefined, [type, index]) : joinAll(found);
  }

  #overload(
    node: Ast,
    name: string,
    receiver: StaticType | undefined,
    types: readonly StaticType[],
    args: readonly Ast[],
  ): StaticType {
    const known = this.#functions.find(name);
    if (known === undefined) return this.#refuse(node, `unbound function: ${name}`);
    const fitting = [...known].filter((one) => fits(one, receiver, types));
    if (fitting.length === 0) return this.#noOverload(node, name, receiver, types);
    const [left = DYN, right = DYN] = types;
    if (name === 'matches') this.#pattern(node, args.at(-1));
    const results = fitting.map(({ result }) => result);
    const all = results.map((result) =>
      name === '_+_' && result.kind === 'list' ? listOf(join(entriesOf(left), entriesOf(right))) : fromCelType(result),
    );
    return joinAll(all);
  }

  #comprehension(node: Ast, value: Comprehension, scope: Scope): StaticType {
    const { iterRange, accuInit, loopCondition, loopStep, result, iterVar, iterVar2, accuVar } = value;
    const read = (part: Ast | undefined, inner: Scope) => (part === undefined ? DYN : this.typeOf(part, inner));
    const range = read(iterRange, scope);
    if (!canBe(range, 'list') && !canBe(range, 'map'))
      return this.#refuse(node, `type mismatch: iterable vs ${typeName(range)}`);
    const before = read(accuInit, scope);
    const within = (accumulated: StaticType) =>
      new Map<string, StaticType>([...scope, [iterVar, itemOf(range)], [iterVar2, DYN], [accuVar, accumulated]]);
    read(loopCondition, within(before));
    const after = join(before, read(loopStep, within(before)));
    return read(result, within(after));
  }

  /** A pattern that is constant can be compiled now. */
  #pattern(node: Ast, pattern: Ast | undefined): void {
    const text = pattern === undefined ? undefined : constantText(pattern);
    if (text === undefined) return;
    try {
      matchesPattern(text, '', 'pattern');
    } catch (error) {
      if (!isSluiceError(error)) throw error;
      this.#refuse(node, messageOf(error));
    }
  }

  #noOverload(node: Ast, name: string, receiver: StaticType | undefined, types: readonly StaticType[]): StaticType {
    const of = receiver === undefined ? '' : `${typeName(receiver)}.`;
    return this.#refuse(
      node,
      `found no matching overload for '${name}' applied to '${of}(${types.map(typeName).join(', ')})'`,
    );
  }

  /** The first problem counts. */
  #refuse({ id }: Ast, message: string): StaticType {
    this.problem ??= { kind: 'unknown', message, id: String(id) };
    return DYN;
  }
}

type ExprOf<Case extends string> =
  Extract<Ast['exprKind'], { readonly case: Case }> extends { readonly value: infer V } ? V : never;
type Select = ExprOf<'selectExpr'>;
type Call = ExprOf<'callExpr'>;
type Comprehension = ExprOf<'comprehensionExpr'>;

function fits(
  { target, arguments: formal }: CelFunc,
  receiver: StaticType | undefined,
  types: readonly StaticType[],
): boolean {
  if ((target === undefined) !== (receiver === undefined) || formal.length !== types.length) return false;
  const accepts = (type: CelType, actual: StaticType) => type.name === DYN || canBe(actual, type.name);
  if (target !== undefined && receiver !== undefined && !accepts(target, receiver)) return false;
  return formal.every((type, index) => accepts(type, types[index] ?? DYN));
}

function fromCelType(type: CelType): StaticType {
  switch (type.kind) {
    case 'list':
      return listOf(fromCelType(type.element));
    case 'map':
      return mapOf(fromCelType(type.key), fromCelType(type.value));
    default:
      return type.name === DYN ? DYN : scalar(type.name);
  }
}

function constantType(kind: string | undefined): StaticType {
  const name = { nullValue: 'null_type', int64Value: 'int', uint64Value: 'uint' }[kind ?? ''];
  return kind === undefined ? DYN : scalar(name ?? kind.replace(/Value$/, ''));
}

/** `google` begins the names of types of Protocol Buffers. */
function typeOfName({ exprKind }: Ast): StaticType {
  return exprKind.case === 'identExpr' && exprKind.value.name === 'google' ? DYN : scalar('type');
}

function constantText({ exprKind }: Ast): string | undefined {
  if (exprKind.case !== 'constExpr') return undefined;
  const { constantKind } = exprKind.value;
  return constantKind.case === 'stringValue' ? constantKind.value : undefined;
}

function entriesOf(type: StaticType): StaticType {
  return type === DYN ? DYN : (type.list ?? {});
}

/** A loop over a map is one over its keys. */
function itemOf(type: StaticType): StaticType {
  if (type === DYN || isUnknown(type)) return DYN;
  const { list, map, fields } = type;
  return joinAll(
    [list, map?.key, fields === undefined ? undefined : scalar('string')].filter((one) => one !== undefined),
  );
}

/** The paths that the expression tests with `has(a.b)`, or with `'b' in a`. */
function testedPaths(root: Ast): ReadonlySet<string> {
  const found = new Set<string>();
  const stack = [root];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    stack.push(...childrenOf(node).map((child) => child.node));
    const { exprKind } = node;
    let path: string | undefined;
    if (exprKind.case === 'selectExpr' && exprKind.value.testOnly) path = pathOf(node);
    if (exprKind.case === 'callExpr' && exprKind.value.function === '@in') {
      const [key, map] = exprKind.value.args;
      const [name, of] = [key && constantText(key), map && pathOf(map)];
      path = name === undefined || of === undefined ? undefined : `${of}.${name}`;
    }
    if (path !== undefined) found.add(path);
  }
  return found;
}

/** `a.b.c` of nested fields of a variable, also for `a['b'].c`. */
function pathOf({ exprKind }: Ast): string | undefined {
  if (exprKind.case === 'identExpr') return exprKind.value.name;
  if (exprKind.case === 'selectExpr') {
    const of = exprKind.value.operand === undefined ? undefined : pathOf(exprKind.value.operand);
    return of === undefined ? undefined : `${of}.${exprKind.value.field}`;
  }
  if (exprKind.case !== 'callExpr' || exprKind.value.function !== '_[_]') return undefined;
  const [operand, key] = exprKind.value.args;
  const [of, name] = [operand && pathOf(operand), key && constantText(key)];
  return of === undefined || name === undefined ? undefined : `${of}.${name}`;
}
