import { z } from 'zod';
import { conditionsOf } from '../../../../kptfile-schema/index.ts';
import { isSluiceError } from '../../../../src/foundation/sluice-error.ts';
import type { KrmObject } from '../../../../src/package/model/krm/krm.ts';
import { formatConditionType } from '../../../../src/package/model/policy/condition-type.ts';
import type { ExternalFact } from '../../../../src/package/model/record/record.ts';
import type { PackageRevision } from '../../../../src/package/model/revision/package-revision.ts';
import { unknownFieldHint } from '../../../../src/resource/schema/unknown-siblings.ts';
import { labelSelector, labelSelectorSchema } from '../../../../src/resource/selector/label-selector.ts';

/** Types of conditions of Dependency objects: the prefix with the name of the object. */
export const DEPENDENCY_TYPES = 'req.nephio.org/v1alpha1.Dependency.*';
const DEPENDENCY_PREFIX = DEPENDENCY_TYPES.slice(0, -1);
/** Of a condition: the package that creates the cluster of a workload is deployed. */
export const CLUSTER_TYPE = 'sluice.dev/ClusterDeployed';

/** Source of the facts of a verdict that name other packages: those that are locked, and those that it waits for. */
export const PROVIDER_SOURCE = 'PackageRevision';
const OWNER_ANNOTATION = 'specializer.nephio.org/owner';
const FOR_ANNOTATION = 'specializer.nephio.org/for';
const NAMESPACE_ANNOTATION = 'specializer.nephio.org/namespace';

const MAX_INJECTORS = 20;
const MAX_COUNT = 1000;
const MAX_NAME_CHARACTERS = 1024;

const name = z.string().min(1).max(MAX_NAME_CHARACTERS);

function refuseInvalid(selector: z.output<typeof labelSelectorSchema>, context: z.RefinementCtx): void {
  try {
    labelSelector(selector);
  } catch (error) {
    if (!isSluiceError(error)) throw error;
    context.addIssue({ code: 'custom', message: error.message });
  }
}

const MAX_SHOWN = 200;

/** The fields of Nephio, `packageName` and `injectors`, and those of Sluice. A misspelt one would weaken the requirement. */
const specSchema = z.strictObject({
  packageName: name.optional(),
  injectors: z
    .array(z.object({ apiVersion: z.string().min(1).max(253), kind: z.string().min(1).max(253) }))
    .max(MAX_INJECTORS)
    .default([]),
  selector: z
    .strictObject({
      package: name.optional(),
      repositories: labelSelectorSchema.superRefine(refuseInvalid).optional(),
      cluster: name.optional(),
    })
    .default({}),
  minCount: z.int().min(1).max(MAX_COUNT).optional(),
  state: z.enum(['Published', 'Deployed', 'Condition']).default('Published'),
  conditionType: name.optional(),
  onProviderChange: z.enum(['Draft', 'Propose', 'Ignore']).default('Propose'),
});

const lockSchema = z.object({
  repository: z.string(),
  package: z.string(),
  revision: z.int(),
  commit: z.string(),
});

/** A provider as it is locked in the status of a Dependency. */
export type LockedProvider = z.infer<typeof lockSchema>;

/** A requirement of a package for other packages. */
export interface Dependency {
  readonly object: KrmObject;
  readonly type: string;
  /** Path of the packages that it requires. */
  readonly packageName: string;
  readonly spec: z.infer<typeof specSchema>;
  /** What begins the names of injected objects, and their namespace, as Nephio chooses them. */
  readonly injected: { readonly prefix: string; readonly namespace: string | undefined };
}

export function isDependency({ apiVersion, kind }: Pick<KrmObject, 'apiVersion' | 'kind'>): boolean {
  return kind === 'Dependency' && apiVersion === 'req.nephio.org/v1alpha1';
}

export function isDependencyType(type: string): boolean {
  return type === CLUSTER_TYPE || type.startsWith(DEPENDENCY_PREFIX);
}

/** True for a package with the condition of a Dependency. */
export function hasDependencies({ kptfile }: PackageRevision): boolean {
  return (
    kptfile !== undefined &&
    [...conditionsOf(kptfile).keys()].some((type) => type !== CLUSTER_TYPE && isDependencyType(type))
  );
}

/** Why an object is invalid, with the field, and the path of that in the object. */
interface InvalidDependency {
  readonly problem: string;
  readonly path: readonly (string | number)[];
}

/** The requirement of an object, or why it is invalid. */
export function readDependency(object: KrmObject): Dependency | InvalidDependency {
  const parsed = specSchema.safeParse(object.value.spec ?? {});
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const place = (issue?.path ?? []).map((step) => (typeof step === 'symbol' ? String(step) : step));
    if (issue?.code === 'unrecognized_keys') {
      const path = [...place, issue.keys[0] ?? ''];
      const hint = unknownFieldHint(specSchema.shape, object.value.spec, path);
      return invalid(`${['spec', ...path].join('.').slice(0, MAX_SHOWN)}: unknown field${hint}`, path);
    }
    return invalid(`spec.${place.join('.')}: ${issue?.message ?? 'is invalid'}`, place);
  }
  const spec = parsed.data;
  const { packageName, selector, state, conditionType } = spec;
  const wanted = selector.package ?? packageName;
  if (wanted === undefined) return invalid('spec.packageName: is required, or spec.selector.package', []);
  if (packageName !== undefined && selector.package !== undefined && packageName !== selector.package)
    return invalid('spec.selector.package: must be spec.packageName, or be absent', ['selector', 'package']);
  if ((state === 'Condition') !== (conditionType !== undefined))
    return invalid('spec.conditionType: is required with state Condition, and with no other state', ['conditionType']);
  const annotations = annotationsOf(object);
  const owner = annotations[FOR_ANNOTATION] ?? annotations[OWNER_ANNOTATION] ?? object.name;
  return {
    ...{ object, type: formatConditionType(object), packageName: wanted, spec },
    injected: { prefix: owner.split('.').at(-1) ?? object.name, namespace: annotations[NAMESPACE_ANNOTATION] },
  };
}

function invalid(problem: string, path: InvalidDependency['path']): InvalidDependency {
  return { problem, path: ['spec', ...path] };
}

/** The providers in the status of a Dependency; empty if it has none that can be read. */
export function lockOf(object: KrmObject): readonly LockedProvider[] {
  const { status } = object.value as { readonly status?: { readonly providers?: unknown } };
  return z.array(lockSchema).safeParse(status?.providers).data ?? [];
}

/** The packages that facts name, as `<repository>/<package>`. */
export function namedPackages(external: readonly ExternalFact[] | undefined): string[] {
  return (external ?? []).filter(({ source }) => source === PROVIDER_SOURCE).map(({ id }) => id);
}

export function annotationsOf(object: Pick<KrmObject, 'value'>): Readonly<Record<string, string>> {
  const { metadata } = object.value as {
    readonly metadata?: { readonly annotations?: Record<string, unknown> | null };
  };
  return Object.fromEntries(
    Object.entries(metadata?.annotations ?? {}).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  );
}
