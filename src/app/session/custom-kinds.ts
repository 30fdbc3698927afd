import { CustomKinds } from '../../../controllers/custom-resource-definition/custom-kinds.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { ObjectSet } from '../data/object-set.ts';
import type { Session } from './session.ts';

/** The kinds that users define, on the objects of a session. */
export function customKindsOf({ registry, objects }: Session): CustomKinds {
  if (!(objects instanceof ObjectSet))
    throw new SluiceError('Unsupported', 'custom kinds can be added to a data folder only; a cluster serves its own');
  return new CustomKinds({
    registry,
    openStorage: (kind) => objects.add(kind),
    closeStorage: (kind) => objects.remove(kind),
  });
}
