import {
  type DeliveredPackage,
  isOwnedBy,
  packageDeliveryOf,
  TARGET_LABEL,
  targetLabelValue,
} from '../../../src/delivery/delivered/delivered-package.ts';
import type { DeliveredPackages } from '../../../src/delivery/delivered/delivered-packages.ts';
import { listDelivered } from '../../../src/delivery/delivered/list-delivered.ts';
import { joinPath, normalizeDirectory } from '../../../src/delivery/path-rules.ts';
import { packageKey } from '../../../src/delivery/selection/select-revisions.ts';
import { mapLimited } from '../../../src/foundation/concurrency/map-limited.ts';
import { isSluiceError, SluiceError } from '../../../src/foundation/sluice-error.ts';
import { sleep } from '../../../src/foundation/time/backoff.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import type { DeliveryTarget } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import {
  type PackageDelivery,
  packageDeliveryKind,
} from '../../../src/resource/kinds/sluice/delivery/package-delivery.ts';
import type { Stored } from '../../../src/resource/object/object.ts';

export interface DeliveredWriterOptions {
  readonly client: Client;
  readonly clock: Clock;
  /** Follows an informer. Default: the objects of a target are listed when they are needed. */
  readonly delivered?: DeliveredPackages | undefined;
}

/** Writes of the objects of one target at a time. */
const MAX_CONCURRENT_WRITES = 8;
/** Attempts against other writers, and against reads that are behind. */
const MAX_ATTEMPTS = 5;
const RETRY_MS = 100;

/** The changes that make the objects of a target record what it delivers. */
interface Changes {
  readonly created: readonly PackageDelivery[];
  readonly updated: readonly Stored<PackageDelivery>[];
  readonly removed: readonly Stored<PackageDelivery>[];
}

/** The objects in which Sluice records what targets deliver. Only the delivery controller writes them. */
export class DeliveredWriter {
  readonly #options: DeliveredWriterOptions;

  constructor(options: DeliveredWriterOptions) {
    this.#options = options;
  }

  /** The objects of a target as they are known. */
  async read(target: Stored<DeliveryTarget>): Promise<DeliveredPackages> {
    return this.#options.delivered ?? listDelivered(this.#options.client, target);
  }

  /**
   * Writes the objects that differ from these packages. A crash in between leaves a mixture of earlier and new ones, which the next call
   * completes. Resolves when reads show what was written.
   */
  async write(
    target: Stored<DeliveryTarget>,
    packages: readonly DeliveredPackage[],
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      const present = (await this.read(target)).objectsOf(target);
      const changes = changesOf(target, packages, present, new Date(clock.now()).toISOString());
      if (await this.#apply(changes, signal)) return;
      signal.throwIfAborted();
      const { name } = target.metadata;
      if (attempt >= MAX_ATTEMPTS)
        throw new SluiceError(
          'Conflict',
          `cannot record what target ${name} delivers: another writer changes its packagedeliveries; it is tried again`,
        );
      // The watch needs time to show what the other writer did.
      await sleep(clock, RETRY_MS * 2 ** (attempt - 1), signal);
    }
  }

  /** Returns false if another writer was faster somewhere; the other writes are made. */
  async #apply({ created, updated, removed }: Changes, signal: AbortSignal): Promise<boolean> {
    const { client, clock, delivered } = this.#options;
    const written: Stored<PackageDelivery>[] = [];
    const gone: Stored<PackageDelivery>[] = [];
    let isComplete = true;
    const attempt = async (write: () => Promise<void>) => {
      signal.throwIfAborted();
      try {
        await write();
      } catch (error) {
        if (!isLostRace(error)) throw error;
        isComplete = false;
      }
    };
    const writes = [
      ...created.map((object) => async () => {
        written.push(await client.create(packageDeliveryKind, object));
      }),
      ...updated.map((object) => async () => {
        written.push(await client.update(packageDeliveryKind, object));
      }),
      ...removed.map((object) => async () => {
        const { name, namespace, uid } = object.metadata;
        try {
          await client.delete(packageDeliveryKind, { name, namespace }, { uid });
        } catch (error) {
          if (!isSluiceError(error, 'NotFound')) throw error;
        }
        gone.push(object);
      }),
    ];
    await mapLimited(writes, MAX_CONCURRENT_WRITES, attempt);
    await delivered?.shows(written, gone, clock);
    return isComplete;
  }
}

function isLostRace(error: unknown): boolean {
  return isSluiceError(error, 'AlreadyExists') || isSluiceError(error, 'Conflict') || isSluiceError(error, 'NotFound');
}

function changesOf(
  target: Stored<DeliveryTarget>,
  packages: readonly DeliveredPackage[],
  present: ReadonlyMap<string, Stored<PackageDelivery>>,
  now: string,
): Changes {
  const directory = normalizeDirectory(target.spec.git.directory);
  const created: PackageDelivery[] = [];
  const updated: Stored<PackageDelivery>[] = [];
  const wanted = new Set<string>();
  for (const one of packages) {
    const key = packageKey(one);
    wanted.add(key);
    const before = present.get(key);
    const folder = joinPath(directory, one.package);
    const isSame = before?.status?.revision === one.revision && before.status.commit === one.commit;
    const deliveredAt = (isSame ? before?.status?.deliveredAt : undefined) ?? now;
    if (before !== undefined && isAsWanted(before, target, one, folder)) continue;
    const object = packageDeliveryOf(target, one, folder, deliveredAt);
    if (before === undefined) {
      created.push(object);
      continue;
    }
    const { labels, ownerReferences } = object.metadata;
    const metadata = { ...before.metadata, labels: { ...before.metadata.labels, ...labels }, ownerReferences };
    updated.push({ ...before, metadata, status: object.status });
  }
  const removed = [...present].flatMap(([key, object]) => (wanted.has(key) ? [] : [object]));
  return { created, updated, removed };
}

function isAsWanted(
  object: Stored<PackageDelivery>,
  { metadata }: Stored<DeliveryTarget>,
  { revision, commit, tree, drifted }: DeliveredPackage,
  folder: string,
): boolean {
  const { status } = object;
  return (
    status?.revision === revision &&
    status.commit === commit &&
    status.tree === tree &&
    status.folder === folder &&
    (status.drifted === true) === (drifted === true) &&
    object.metadata.labels?.[TARGET_LABEL] === targetLabelValue(metadata.name) &&
    isOwnedBy(object, metadata.uid)
  );
}
