import { SluiceError } from '../../../foundation/sluice-error.ts';

/** A path into an object, ready to be followed. */
export interface JsonPath {
  /** The names and indexes, if the path is plain: without `[*]` and filters. */
  readonly plain: readonly (string | number)[] | undefined;
  /** The first value that the path leads to; undefined if there is none. */
  first(root: unknown): unknown;
}

type Step = (values: readonly unknown[]) => unknown[];

const MAX_LENGTH = 512;
/** A path with several `[*]` could lead to very many values, of which one is shown. */
const MAX_VALUES = 1000;

const STEP = new RegExp(
  [
    String.raw`\.(?<name>(?:[A-Za-z0-9_$-]|\\.)+)`,
    String.raw`\[\s*(?<index>-?\d{1,9})\s*\]`,
    String.raw`(?<all>\[\s*\*\s*\]|\.\*)`,
    String.raw`\[\s*(?:'(?<single>[^'\\]*)'|"(?<double>[^"\\]*)")\s*\]`,
    String.raw`\[\?\(\s*@(?<below>(?:\.[A-Za-z0-9_$-]+)+)\s*(?<sign>==|!=)\s*(?:'(?<text1>[^'\\]*)'|"(?<text2>[^"\\]*)"|(?<plain>true|false|-?\d{1,15}))\s*\)\]`,
  ].join('|'),
  'y',
);

/**
 * Reads the part of JSONPath that printer columns need: `.spec.a[0].b`, `['a.b']`, `.a\.b`, `[*]` and
 * `.status.conditions[?(@.type=="Ready")].status`. Throws InvalidInput for everything else.
 */
export function parseJsonPath(text: string): JsonPath {
  if (text.length > MAX_LENGTH) throw new SluiceError('InvalidInput', `a path has at most ${MAX_LENGTH} characters`);
  const steps: Step[] = [];
  const plain: (string | number)[] = [];
  let at = 0;
  while (at < text.length) {
    STEP.lastIndex = at;
    const groups = STEP.exec(text)?.groups;
    if (groups === undefined)
      throw new SluiceError(
        'InvalidInput',
        `${JSON.stringify(text)} is no path: cannot read ${JSON.stringify(text.slice(at))}`,
      );
    at = STEP.lastIndex;
    const name = groups.name?.replaceAll('\\', '') ?? groups.single ?? groups.double;
    if (name !== undefined) {
      steps.push((values) => values.map((value) => fieldOf(value, name)));
      plain.push(name);
    } else if (groups.index !== undefined) {
      const index = Number(groups.index);
      steps.push((values) => values.map((value) => (Array.isArray(value) ? value.at(index) : undefined)));
      plain.push(index);
    } else steps.push(groups.below === undefined ? everything : filter(groups));
  }
  if (steps.length === 0) throw new SluiceError('InvalidInput', 'a path must name a field, such as .spec.size');
  return {
    plain: plain.length === steps.length ? plain : undefined,
    first(root) {
      let values: unknown[] = [root];
      for (const step of steps) {
        values = step(values).filter((value) => value !== undefined && value !== null);
        if (values.length > MAX_VALUES) values.length = MAX_VALUES;
      }
      return values[0];
    },
  };
}

function everything(values: readonly unknown[]): unknown[] {
  const found: unknown[] = [];
  for (const value of values) {
    if (typeof value !== 'object' || value === null) continue;
    for (const inner of Object.values(value)) {
      if (found.length >= MAX_VALUES) return found;
      found.push(inner);
    }
  }
  return found;
}

function filter(groups: Readonly<Record<string, string | undefined>>): Step {
  const names = (groups.below ?? '').split('.').slice(1);
  const expected = groups.text1 ?? groups.text2 ?? JSON.parse(groups.plain ?? 'null');
  const wanted = groups.sign === '==';
  return (values) =>
    everything(values).filter((item) => {
      const value = names.reduce<unknown>(fieldOf, item);
      return value !== undefined && (value === expected) === wanted;
    });
}

function fieldOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[name];
}
