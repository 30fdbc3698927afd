import { EventRecorder } from '../../controller/event-recorder.ts';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';

/** Writes a Warning event durably. Throws Unavailable if it cannot be written. */
export async function recordAlert(
  { client, clock }: { readonly client: Client; readonly clock: Clock },
  object: KubernetesObject,
  reason: string,
  message: string,
): Promise<void> {
  let failure: unknown;
  const onError = (error: unknown) => {
    failure = error;
  };
  const recorder = new EventRecorder({ client, clock, component: 'sluice', onError });
  recorder.record(object, 'Warning', reason, message);
  await recorder.flush();
  if (failure === undefined) return;
  throw new SluiceError(
    'Unavailable',
    `nothing was done, since the event ${reason} could not be written: ${messageOf(failure)}; try again`,
    { cause: failure },
  );
}
