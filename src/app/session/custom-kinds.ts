import { CustomKinds } from '../../../controllers/custom-resource-definition/custom-kinds.ts';
import type { Session } from './session.ts';

/** The kinds that users define, on the objects of a session. */
export function customKindsOf({ registry, objects }: Session): CustomKinds {
  return new CustomKinds({
    registry,
    openStorage: (kind) => objects.add(kind),
    closeStorage: (kind) => objects.remove(kind),
  });
}
