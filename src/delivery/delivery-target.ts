import type { DeliveryTarget } from '../resource/kinds/sluice/delivery/delivery-target.ts';
import { DEFAULT_NAMESPACE } from '../resource/object/object.ts';

export type Rollback = NonNullable<NonNullable<DeliveryTarget['status']>['rollbacks']>[number];

/** The fields of a target that determine the desired trees. */
export interface TargetSettings
  extends Pick<DeliveryTarget['spec'], 'onRemoval' | 'allowSecrets' | 'allowOutOfBand' | 'allowPrune' | 'pins'> {
  /** Written into the folders of the target: no two targets share one. */
  readonly name: string;
  /** Overrides of revisions that failed; weaker than pins. */
  readonly rollbacks?: readonly Rollback[];
  /** `/` is the root. */
  readonly directory: string;
}

export function settingsOf({ metadata, spec, status }: DeliveryTarget): TargetSettings {
  const { onRemoval, allowSecrets, allowOutOfBand, allowPrune, pins, git } = spec;
  const isDefault = (metadata.namespace ?? DEFAULT_NAMESPACE) === DEFAULT_NAMESPACE;
  const name = isDefault ? metadata.name : `${metadata.namespace}/${metadata.name}`;
  return {
    name,
    directory: git.directory,
    onRemoval,
    allowSecrets,
    allowOutOfBand,
    ...(allowPrune === undefined ? {} : { allowPrune }),
    ...(pins === undefined ? {} : { pins }),
    ...(status?.rollbacks === undefined ? {} : { rollbacks: status.rollbacks }),
  };
}
