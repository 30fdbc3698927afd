import { SluiceError } from '../../src/foundation/sluice-error.ts';
import type { KubernetesObject, Stored } from '../../src/resource/object/object.ts';
import type { RequestContext } from '../../src/resource/object/request-context.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';
import { ALL_VERBS, type Storage, type Verb } from '../../src/resource/storage/storage.ts';
import { TranslatedStorage } from '../../src/resource/storage/translated-storage.ts';

export interface VersionViewOptions {
  /** The kind in the version of this view. */
  readonly kind: Kind;
  /** The objects of all versions. */
  readonly objects: Storage;
  /** The apiVersion that is written into objects. */
  readonly storedAs: string;
  /** True once the kind is being deleted: it accepts no new objects. */
  readonly isClosing: boolean;
}

/** The objects of a user-defined kind in one of its versions. Versions differ only in name and schema. */
export class VersionView extends TranslatedStorage<KubernetesObject, KubernetesObject> {
  readonly verbs: readonly Verb[];

  constructor({ kind, objects, storedAs, isClosing }: VersionViewOptions) {
    super(kind, objects, {
      fromStored: (object) => withVersion(object, kind.apiVersion),
      toStored: (object) => withVersion(object, storedAs),
    });
    this.verbs = isClosing ? ALL_VERBS.filter((verb) => verb !== 'create') : ALL_VERBS;
  }

  override async create(context: RequestContext, object: KubernetesObject): Promise<Stored> {
    if (!this.verbs.includes('create'))
      throw new SluiceError('Unsupported', 'create not allowed while custom resource definition is terminating');
    return super.create(context, object);
  }
}

function withVersion(object: KubernetesObject, apiVersion: string): KubernetesObject {
  return object.apiVersion === apiVersion ? object : { ...object, apiVersion };
}
