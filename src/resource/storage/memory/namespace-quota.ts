import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { KubernetesObject } from '../../object/object.ts';
import type { KindIdentity } from '../../schema/kind-identity.ts';
import { resourceName } from './object-rules.ts';

/** Maximum size of all objects of one namespace; its events and its PackageDeliveries each have a quota of the same size. */
export interface QuotaLimits {
  readonly objects: number;
  /** About as many as the objects have as JSON. All of them are kept in memory. */
  readonly bytes: number;
}

export const DEFAULT_QUOTA: QuotaLimits = { objects: 50_000, bytes: 256 * 1024 * 1024 };

export interface QuotaUsage {
  readonly namespace: string;
  readonly resource: 'objects' | 'events' | 'packagedeliveries';
  readonly objects: number;
  readonly bytes: number;
}

/** One name for all: a quota here is no object that a client could read. */
const QUOTA_NAME = 'sluice-namespace';

/**
 * Tracks the size of each namespace, so that a hostile or broken client cannot use up the memory. Storages account for every
 * write, and check writes of the API: writes of Sluice itself are not limited. An update that does not enlarge an object is
 * always allowed.
 */
export class NamespaceQuota {
  readonly #limits: QuotaLimits;
  readonly #usage = new Map<
    string,
    { namespace: string; resource: QuotaUsage['resource']; objects: number; bytes: number }
  >();
  #exceeded = 0;

  constructor(limits: QuotaLimits = DEFAULT_QUOTA) {
    this.#limits = limits;
  }

  /** Writes that were refused. */
  get exceeded(): number {
    return this.#exceeded;
  }

  usage(): QuotaUsage[] {
    return [...this.#usage.values()].map((usage) => ({ ...usage }));
  }

  /** Accounts for a completed write. */
  account(kind: KindIdentity, before: KubernetesObject | undefined, after: KubernetesObject | undefined): void {
    const { namespace } = (after ?? before)?.metadata ?? {};
    if (namespace === undefined) return;
    const resource = resourceOf(kind);
    const id = `${resource}/${namespace}`;
    const usage = this.#usage.get(id) ?? { namespace, resource, objects: 0, bytes: 0 };
    usage.objects += countOf(after) - countOf(before);
    usage.bytes += sizeOf(after) - sizeOf(before);
    if (usage.objects === 0) this.#usage.delete(id);
    else this.#usage.set(id, usage);
  }

  /** Throws Refused, in the words of Kubernetes, if a write would take the namespace over its quota. */
  check(kind: KindIdentity, before: KubernetesObject | undefined, after: KubernetesObject): void {
    const { namespace, name } = after.metadata;
    if (namespace === undefined) return;
    const resource = resourceOf(kind);
    const used = this.#usage.get(`${resource}/${namespace}`) ?? { objects: 0, bytes: 0 };
    const requested = { objects: countOf(after) - countOf(before), bytes: sizeOf(after) - sizeOf(before) };
    const names = { objects: resource, bytes: `${resource}.bytes` };
    const over = (['objects', 'bytes'] as const).filter(
      (field) => requested[field] > 0 && used[field] + requested[field] > this.#limits[field],
    );
    if (over.length === 0) return;
    this.#exceeded += 1;
    const list = (values: Readonly<Record<'objects' | 'bytes', number>>) =>
      over.map((field) => `${names[field]}=${values[field]}`).join(',');
    throw new SluiceError(
      'Refused',
      `${resourceName(kind)} ${JSON.stringify(name)} is forbidden: exceeded quota: ${QUOTA_NAME}, ` +
        `requested: ${list(requested)}, used: ${list(used)}, limited: ${list(this.#limits)}`,
    );
  }
}

/** Sluice writes these itself, and they must not keep a user from creating other objects. */
function resourceOf({ group, plural }: KindIdentity): QuotaUsage['resource'] {
  if (group === 'sluice.dev' && plural === 'packagedeliveries') return 'packagedeliveries';
  return group === '' && plural === 'events' ? 'events' : 'objects';
}

function countOf(object: KubernetesObject | undefined): number {
  return object === undefined ? 0 : 1;
}

/** About the characters of the JSON text, without making it; the same for equal values. */
function sizeOf(value: unknown): number {
  if (value === undefined) return 0;
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 5;
  let size = 2;
  if (Array.isArray(value)) for (const item of value) size += 1 + sizeOf(item);
  else
    for (const [key, field] of Object.entries(value)) if (field !== undefined) size += key.length + 4 + sizeOf(field);
  return size;
}
