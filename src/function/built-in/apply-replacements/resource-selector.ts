import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import { linearRegex } from '../../../foundation/text/linear-regex.ts';
import { type LabelSelector, labelSelector, matchesLabels } from '../../../resource/selector/label-selector.ts';
import type { Resource } from '../../resource/resource.ts';
import type { ReplacementSource, ReplacementTarget, TargetSelector } from './replacement-config.ts';

const FIELDS = ['group', 'version', 'kind', 'name', 'namespace'] as const;
const DEFAULT_NAMESPACE = 'default';
const PREVIOUS = 'internal.config.kubernetes.io/previous';

/** The names of a resource, and those before functions of kustomize renamed it. */
type ResourceId = Readonly<Record<(typeof FIELDS)[number], string>>;

type Test = (resource: Resource, ids: readonly ResourceId[]) => boolean;

/** The resources that a source names, by exact texts. */
export function sourcesIn(items: readonly Resource[], source: ReplacementSource): Resource[] {
  const matches = idTest(source, (expected) => (text) => text === expected);
  return items.filter((item) => matches(item, idsOf(item)));
}

export interface Selecting {
  /** The target, for messages. */
  readonly where: string;
  /** True if the fields of a selector are exact texts and not patterns. */
  readonly literal: boolean;
}

/** The resources that a target selects and does not reject. Throws InvalidInput, which names `where`, for a bad pattern. */
export function targetsIn(
  items: readonly Resource[],
  target: ReplacementTarget,
  { where, literal }: Selecting,
): Resource[] {
  const selects = selectorTest(target.select, { where: `${where}.select`, literal });
  const rejects = (target.reject ?? [])
    .filter((reject) => Object.values(reject).some((text) => text !== ''))
    .map((reject, at) => selectorTest(reject, { where: `${where}.reject[${at}]`, literal }));
  return items.filter((item) => {
    const ids = idsOf(item);
    return selects(item, ids) && !rejects.some((test) => test(item, ids));
  });
}

/** For messages: `kind ConfigMap, name settings`. */
export function describeSelector(selector: ReplacementSource): string {
  const given = FIELDS.filter((field) => selector[field]).map((field) => `${field} ${selector[field]}`);
  return given.length === 0 ? 'any resource' : given.join(', ');
}

function selectorTest(selector: TargetSelector, { where, literal }: Selecting): Test {
  const id = idTest(selector, (pattern, field) =>
    literal ? (text) => text === pattern : patternTest(pattern, `${where}.${field}`),
  );
  const labels = requirementsOf(selector.labelSelector, `${where}.labelSelector`);
  const annotations = requirementsOf(selector.annotationSelector, `${where}.annotationSelector`);
  return (resource, ids) =>
    id(resource, ids) &&
    (labels === undefined || matchesLabels(labels, textsOf(resource, 'labels'))) &&
    (annotations === undefined || matchesLabels(annotations, textsOf(resource, 'annotations')));
}

function requirementsOf(text: string | undefined, where: string): LabelSelector | undefined {
  if (text === undefined || text === '') return undefined;
  try {
    return labelSelector(text);
  } catch (error) {
    throw new SluiceError('InvalidInput', `${where}: ${messageOf(error)}`, { cause: error });
  }
}

function idTest(
  selector: Partial<Record<(typeof FIELDS)[number], string | undefined>>,
  testOf: (expected: string, field: string) => (text: string) => boolean,
): Test {
  const tests = FIELDS.flatMap((field) => {
    const expected = selector[field];
    return expected === undefined || expected === '' ? [] : [{ field, test: testOf(expected, field) }];
  });
  return (_, ids) => ids.some((id) => tests.every(({ field, test }) => test(id[field])));
}

/** A pattern matches the whole text. Most are plain names. */
function patternTest(pattern: string, where: string): (text: string) => boolean {
  if (/^[\w/-]*$/.test(pattern)) return (text) => text === pattern;
  const regex = linearRegex(`^(?:${pattern})$`, where);
  return (text) => regex.test(text);
}

function idsOf(resource: Resource): ResourceId[] {
  const { group, apiVersion, kind, name, namespace = DEFAULT_NAMESPACE } = resource;
  const version = apiVersion.slice(apiVersion.indexOf('/') + 1);
  const ids = [{ group, version, kind, name, namespace }];
  const names = resource.annotation(`${PREVIOUS}Names`)?.split(',') ?? [];
  const kinds = resource.annotation(`${PREVIOUS}Kinds`)?.split(',') ?? [];
  const namespaces = resource.annotation(`${PREVIOUS}Namespaces`)?.split(',') ?? [];
  for (const [at, before] of names.entries()) {
    const space = namespaces[at] || DEFAULT_NAMESPACE;
    ids.push({ group, version, kind: kinds[at] ?? kind, name: before, namespace: space });
  }
  return ids;
}

function textsOf(resource: Resource, field: 'labels' | 'annotations'): Readonly<Record<string, string>> {
  const value = resource.get(['metadata', field]);
  if (typeof value !== 'object' || value === null) return {};
  return Object.fromEntries(Object.entries(value).map(([key, text]) => [key, String(text)]));
}
