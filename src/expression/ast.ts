import type { parse } from '@bufbuild/cel';

/** The syntax tree that the parser makes. */
export type Ast = ReturnType<typeof parse>['expr'];

/** Functions of the meter. No text can contain these names, so expressions cannot call them themselves. */
export const METER_ROUND = '@round';
export const METER_VALUE = '@value';
const METERS: ReadonlySet<string> = new Set([METER_ROUND, METER_VALUE]);

export interface AstProblem {
  readonly kind: 'limit' | 'unknown';
  readonly message: string;
  /** Id of the node, for its position. */
  readonly id: string;
}

/** Names of types, as in `type(x) == int`. */
export const TYPE_NAMES = new Set('bool int uint double string bytes list map null_type type google'.split(' '));

/** Returns a violation of the limits, or a name that is not a variable; undefined if there is neither. */
export function inspect(
  root: Ast,
  variables: readonly string[],
  limits: { readonly nodes: number; readonly depth: number },
): AstProblem | undefined {
  let nodes = 0;
  const stack: { node: Ast; depth: number; scope: ReadonlySet<string> }[] = [
    { node: root, depth: 1, scope: new Set(variables) },
  ];
  for (let entry = stack.pop(); entry !== undefined; entry = stack.pop()) {
    const { node, depth, scope } = entry;
    const id = String(node.id);
    nodes += 1;
    if (nodes > limits.nodes) return { kind: 'limit', message: `has more than ${limits.nodes} parts`, id };
    if (depth > limits.depth) return { kind: 'limit', message: `is nested more than ${limits.depth} levels deep`, id };
    const { exprKind } = node;
    if (exprKind.case === 'identExpr') {
      const { name } = exprKind.value;
      if (!scope.has(name) && !TYPE_NAMES.has(name))
        return { kind: 'unknown', message: `${name} is not known; known are ${variables.join(', ')}`, id };
    }
    for (const child of childrenOf(node)) {
      const names = child.binds.length === 0 ? scope : new Set([...scope, ...child.binds]);
      stack.push({ node: child.node, depth: depth + 1, scope: names });
    }
  }
  return undefined;
}

/** Operators whose cost does not grow with their arguments, or that the meter replaces. */
const UNMETERED = new Set(
  '_&&_ _||_ !_ _?_:_ @not_strictly_false _+_ _-_ _*_ _/_ _%_ -_ _<_ _<=_ _>_ _>=_ _[_]'.split(' '),
);

/**
 * The same tree in which every round of a loop checks the meter first and ends the loop if it is exhausted, and in which lists, maps and the
 * results of functions that may be expensive pass through the meter, which reads the time.
 */
export function meterTree(root: Ast): Ast {
  const stack = [root];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    stack.push(...childrenOf(node).map((child) => child.node));
    const { exprKind } = node;
    if (exprKind.case === 'comprehensionExpr' && exprKind.value.loopCondition !== undefined) {
      const condition = exprKind.value.loopCondition;
      exprKind.value.loopCondition = call(condition, '_&&_', [call(condition, METER_ROUND, []), condition]);
    }
    if (isMetered(exprKind)) node.exprKind = call(node, METER_VALUE, [{ ...node }]).exprKind;
  }
  return root;
}

function isMetered(exprKind: Ast['exprKind']): boolean {
  switch (exprKind.case) {
    case 'listExpr':
      return exprKind.value.elements.some((element) => element.exprKind.case !== 'constExpr');
    case 'structExpr':
      return exprKind.value.entries.length > 0;
    case 'callExpr':
      return !UNMETERED.has(exprKind.value.function) && !METERS.has(exprKind.value.function);
    default:
      return false;
  }
}

function call(at: Ast, name: string, args: Ast[]): Ast {
  const value = { $typeName: 'cel.expr.Expr.Call', function: name, args } as const;
  return { $typeName: 'cel.expr.Expr', id: at.id, exprKind: { case: 'callExpr', value } };
}

/** The nodes below a node, each with the names that are bound for it. */
export function childrenOf({ exprKind }: Ast): { node: Ast; binds: readonly string[] }[] {
  const plain = (nodes: readonly (Ast | undefined)[], binds: readonly string[] = []) =>
    nodes.flatMap((node) => (node === undefined ? [] : [{ node, binds }]));
  switch (exprKind.case) {
    case 'callExpr':
      return plain([exprKind.value.target, ...exprKind.value.args]);
    case 'selectExpr':
      return plain([exprKind.value.operand]);
    case 'listExpr':
      return plain(exprKind.value.elements);
    case 'structExpr':
      return exprKind.value.entries.flatMap(({ keyKind, value }) =>
        plain([keyKind.case === 'mapKey' ? keyKind.value : undefined, value]),
      );
    case 'comprehensionExpr': {
      const { iterRange, accuInit, loopCondition, loopStep, result, iterVar, iterVar2, accuVar } = exprKind.value;
      return [
        ...plain([iterRange, accuInit]),
        ...plain([loopCondition, loopStep], [iterVar, iterVar2, accuVar]),
        ...plain([result], [accuVar]),
      ];
    }
    default:
      return [];
  }
}
