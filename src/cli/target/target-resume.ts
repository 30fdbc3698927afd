import { RESUME_ANNOTATION, withResumed } from '../../delivery/rollback/resume.ts';
import { packageKey } from '../../delivery/selection/select-revisions.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { inPackages } from '../access/in-packages.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { expectTarget } from './target-get.ts';

/** `sluice target resume` */
export function targetResume(
  name: string,
  path: string | undefined,
  options: PlaceOptions & ActorOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  return inPackages(
    options,
    invocation,
    async (access) => {
      const { terminal } = invocation;
      const target = await expectTarget(access, name);
      const { rollbacks = [] } = target.status ?? {};
      const ended = rollbacks.filter((one) => path === undefined || path === one.package || path === packageKey(one));
      if (ended.length === 0) {
        const known = rollbacks.map(packageKey).join(', ');
        const hint = known === '' ? 'it delivers its last revisions already' : `there are rollbacks of ${known}`;
        const what = path === undefined ? 'no rollback' : `no rollback of ${path}`;
        throw new SluiceError('NotFound', `cannot resume: target ${name} has ${what}; ${hint}`);
      }
      const value = withResumed(target.metadata.annotations?.[RESUME_ANNOTATION], ended);
      const annotations = { ...target.metadata.annotations, [RESUME_ANNOTATION]: value };
      await access.client.update(deliveryTargetKind, { ...target, metadata: { ...target.metadata, annotations } });
      for (const one of ended)
        terminal.line(`${printable(packageKey(one))}: v${one.from} will be delivered again instead of v${one.to}`);
      return 0;
    },
    true,
  );
}
