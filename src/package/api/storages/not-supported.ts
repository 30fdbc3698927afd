import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { Kind } from '../../../resource/schema/kind.ts';
import { resourceName } from '../../../resource/storage/memory/object-rules.ts';

/** The error of Kubernetes for a verb that a kind does not have. */
export function notSupported(kind: Pick<Kind, 'plural' | 'group'>, verb: string): SluiceError {
  return new SluiceError(
    'Unsupported',
    `${verb} is not supported on resources of kind ${JSON.stringify(resourceName(kind))}`,
  );
}
