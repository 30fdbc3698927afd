import { stringify } from 'yaml';
import { canonicalJson } from '../../../../src/foundation/text/canonical-json.ts';
import { type KrmObject, parseKrmFile } from '../../../../src/package/model/krm/krm.ts';
import { annotationsOf, type Dependency } from './dependency-object.ts';
import { type Provider, packageId } from './select-providers.ts';

const CONFIG = { apiVersion: 'ref.nephio.org/v1alpha1', kind: 'Config' } as const;
/** Annotation of an injected object: the package that it is from. */
const PROVIDER_ANNOTATION = 'sluice.dev/provider';
const OWNER_ANNOTATION = 'specializer.nephio.org/owner';
const MAX_OBJECTS = 500;
const MAX_BYTES = 1024 * 1024;

/** An object of a provider, wrapped as Nephio's functions read it. */
export interface InjectedObject {
  readonly name: string;
  readonly namespace: string | undefined;
  readonly provider: string;
  readonly config: unknown;
}

/** The file with the injected objects of a Dependency. It belongs to Sluice. */
export function injectedFile({ object }: Dependency): string {
  return `injected-${object.name.replace(/[^A-Za-z0-9._-]/g, '-')}.yaml`;
}

/**
 * The objects to inject, named as Nephio names them: `<owner>-<name>`. Where providers have objects of the same name, which Nephio would
 * overwrite, all of these have the name of their repository too.
 */
export function injectedObjects({ injected }: Dependency, providers: readonly Provider[]): InjectedObject[] {
  const all = providers.flatMap(({ revision, objects }) => objects.map((object) => ({ revision, object })));
  const counts = Map.groupBy(all, ({ object }) => object.name);
  const taken = new Map<string, number>();
  return all.map(({ revision, object }) => {
    const isShared = (counts.get(object.name)?.length ?? 0) > 1;
    const base = [injected.prefix, object.name, ...(isShared ? [revision.key.repository] : [])].join('-');
    const number = (taken.get(base) ?? 0) + 1;
    taken.set(base, number);
    return {
      ...{ name: number === 1 ? base : `${base}-${number}`, namespace: injected.namespace },
      ...{ provider: packageId(revision), config: object.value },
    };
  });
}

/**
 * The text of the file; undefined if the present one has the same objects, whatever functions of the package have added to their metadata.
 * Returns the problem for a file that is not Sluice's, and for too many objects.
 */
export function writeInjected(
  dependency: Dependency,
  wanted: readonly InjectedObject[],
  files: ReadonlyMap<string, Buffer>,
): { readonly text: string | null | undefined } | { readonly problem: string } {
  const file = injectedFile(dependency);
  const present = files.get(file);
  const objects = present === undefined ? [] : parseKrmFile(file, present).objects;
  if (present !== undefined && (objects.length === 0 || objects.some((object) => !isOurs(object, dependency))))
    return { problem: `${file} has objects that were not injected; rename it` };
  if (wanted.length === 0) return { text: present === undefined ? undefined : null };
  if (wanted.length > MAX_OBJECTS)
    return { problem: `${wanted.length} objects would be injected, at most ${MAX_OBJECTS}; select fewer packages` };
  const same = (one: unknown) => canonicalJson(one);
  const before = objects.map(({ name, value }) => [name, (value.spec as { config?: unknown } | undefined)?.config]);
  if (same(before) === same(wanted.map(({ name, config }) => [name, config]))) return { text: undefined };
  const text = wanted.map((one) => documentOf(dependency, one)).join('---\n');
  if (Buffer.byteLength(text) > MAX_BYTES)
    return { problem: `the injected objects have more than ${MAX_BYTES} bytes; select fewer packages` };
  return { text };
}

function documentOf({ type }: Dependency, { name, namespace, provider, config }: InjectedObject): string {
  const annotations = {
    'config.kubernetes.io/local-config': 'true',
    [OWNER_ANNOTATION]: type,
    [PROVIDER_ANNOTATION]: provider,
  };
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }), annotations };
  return stringify(
    { ...CONFIG, metadata, spec: { config } },
    { lineWidth: 0, compat: 'yaml-1.1', aliasDuplicateObjects: false },
  );
}

function isOurs(object: KrmObject, { type }: Dependency): boolean {
  const annotations = annotationsOf(object);
  return (
    object.apiVersion === CONFIG.apiVersion &&
    object.kind === CONFIG.kind &&
    annotations[OWNER_ANNOTATION] === type &&
    annotations[PROVIDER_ANNOTATION] !== undefined
  );
}
