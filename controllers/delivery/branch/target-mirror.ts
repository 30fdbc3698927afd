import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { DeliveryTarget } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';

/** The path of the mirror of a remote target, which the controllers of targets share; it may be deleted at any time. */
export function controllerMirror(dataFolder: string, { metadata, spec }: DeliveryTarget): string {
  const { name, namespace } = metadata;
  const digest = createHash('sha256').update(`${namespace}/${name} ${spec.git.repo}`).digest('hex').slice(0, 8);
  return join(dataFolder, 'targets', `${name}-${digest}.git`);
}
