import { isSluiceError, messageOf } from '../../foundation/sluice-error.ts';
import type { ExternalRunner } from '../external/external-runner.ts';
import type { FunctionLimits, PipelineEvent, PipelineInput, PipelineOutcome } from '../pipeline/pipeline.ts';
import { AskingRunner } from './asking-runner.ts';
import type { FromWorker, ToWorker } from './messages.ts';

export interface Rendering {
  readonly external: ExternalRunner | undefined;
  readonly limits: FunctionLimits;
  readonly onEvent: (event: PipelineEvent) => void;
}

/** In a worker: renders what the other side sends, one package at a time, until the other side is gone. */
export function serveWorker(render: (input: PipelineInput, rendering: Rendering) => Promise<PipelineOutcome>): void {
  const send = (message: FromWorker) => {
    process.send?.(message);
  };
  const external = new AskingRunner(send);
  const run = async (message: Extract<ToWorker, { readonly type: 'run' }>) => {
    try {
      const outcome = await render(message.input, {
        external: message.external ? external : undefined,
        limits: message.limits,
        onEvent: (event) => send({ type: 'event', event }),
      });
      send({ type: 'done', outcome });
    } catch (error) {
      const code = isSluiceError(error) ? error.code : 'Internal';
      send({ type: 'failed', error: { code, message: messageOf(error) } });
    }
  };
  process.on('message', (message: ToWorker) => {
    if (message.type === 'run') void run(message);
    else external.take(message);
  });
  process.on('disconnect', () => process.exit());
  send({ type: 'ready' });
}
