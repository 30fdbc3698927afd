import type { DeliveryExplainerOptions } from '../../../controllers/delivery/explain-delivery.ts';
import type { DeliveryPreviews } from '../../../controllers/delivery/preview/preview-delivery.ts';
import type { ShownProposals } from '../../../controllers/pull-request/shown-proposals.ts';
import type { BuildPackage } from '../../delivery/render/build-package.ts';
import { KeyedMutex } from '../../foundation/concurrency/mutex.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { GitNetwork } from '../../git/network/git-network.ts';
import type { Explanation } from '../../package/model/revision/explanation.ts';
import type { PackageRevision } from '../../package/model/revision/package-revision.ts';
import type { RevisionPreview } from '../../package/model/revision/revision-readings.ts';
import type { RevisionStore } from '../../package/store/revision-store.ts';
import type { Client } from '../../resource/client/client.ts';
import { keyText, type ObjectKey } from '../../resource/object/object.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import { type DataFolder, targetMirror } from '../data/data-folder.ts';
import { runningUp, type UpAbout } from '../data/up-lock.ts';
import type { ObjectReaders } from '../policies/object-readers.ts';
import { BUILT_IN_RESOLVERS } from '../resolvers/built-in-resolvers.ts';
import type { RevisionExplanations } from './explain-revision.ts';
import { keyOfId } from './registered-repositories.ts';

export interface SessionReadingsOptions {
  readonly folder: DataFolder;
  readonly clock: Clock;
  readonly network: GitNetwork;
  readonly client: Client;
  readonly store: RevisionStore;
  readonly readers: ObjectReaders;
  /** Milliseconds that a reading waits for a remote repository. */
  readonly remoteTimeoutMs: number;
  readonly buildPackage: BuildPackage;
  readonly shownProposals: ShownProposals;
  /** See `SessionOptions`. */
  readonly about: UpAbout | undefined;
}

/** What is computed about a revision when a client requests it: its explanation, and what its publication delivers. */
export class SessionReadings {
  readonly #options: SessionReadingsOptions;
  readonly #targetMirrors = new KeyedMutex();
  #explanations: RevisionExplanations | undefined;
  #previews: DeliveryPreviews | undefined;

  constructor(options: SessionReadingsOptions) {
    this.#options = options;
  }

  /** Explains the state of a revision, by its key. NotFound if it does not exist. */
  async explain({ actor, signal }: RequestContext, key: ObjectKey): Promise<Explanation> {
    const id = keyText(key);
    const repository = id.split('.', 1)[0] ?? '';
    const { readers, store, shownProposals, folder, clock } = this.#options;
    await readers.refresh(keyOfId(repository));
    await store.reach(repository, 'look');
    // Packages of other repositories may come from it.
    if (store.find(id)?.lifecycle === 'DeletionProposed') await store.reachAll();
    const { RevisionExplanations } = await import('./explain-revision.ts');
    this.#explanations ??= new RevisionExplanations(this.#deliveryOptions(), shownProposals);
    const about = this.#options.about ?? (await runningUp(folder));
    return this.#explanations.explain(key, {
      resolvers: about?.resolvers ?? BUILT_IN_RESOLVERS,
      disabled: about?.disabled ?? [],
      running: about !== undefined,
      ...{ now: clock.now(), actor: actor.name, signal },
    });
  }

  /** Computes what the publication of a revision commits to its targets. */
  async preview(
    { mayReadTarget, signal }: RequestContext,
    revision: PackageRevision,
    target: string | undefined,
  ): Promise<RevisionPreview> {
    await this.#options.readers.refresh({ namespace: revision.namespace, name: revision.key.repository });
    // A target delivers packages of several repositories, of which each may own folders in its branch.
    await this.#options.store.reachAll();
    const { DeliveryPreviews } = await import('../../../controllers/delivery/preview/preview-delivery.ts');
    this.#previews ??= new DeliveryPreviews(this.#deliveryOptions());
    return this.#previews.preview(revision, target, { mayReadTarget, signal });
  }

  #deliveryOptions(): DeliveryExplainerOptions {
    const { folder, store, client, network, remoteTimeoutMs, buildPackage, readers } = this.#options;
    return {
      ...{ store, client, network, timeoutMs: remoteTimeoutMs },
      ...{ dataFolder: folder.path, mirrors: this.#targetMirrors, buildPackage },
      mirrorOf: (target) => targetMirror(folder, target),
      repositories: () => readers.repositories.list(),
      targets: () => readers.targets.list(),
      delivered: readers.delivered,
    };
  }
}
