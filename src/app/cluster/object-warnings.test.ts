import { expect, test } from 'vitest';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { objectWarnings } from './object-warnings.ts';

function lacks(kind: string): SluiceError {
  const message = `https://10.0.0.1 (service account) does not serve ${kind} in version v1alpha1`;
  return new SluiceError('Unsupported', message, { details: { kind } });
}

test('kinds that are not installed are one message with the next step, which repeats every five minutes', async () => {
  const clock = new ManualClock();
  const messages: string[] = [];
  const report = objectWarnings(clock, (message) => messages.push(message));
  for (let attempt = 0; attempt < 10; attempt += 1) {
    report(lacks('packagepolicies.sluice.dev'));
    report(lacks('deliverytargets.sluice.dev'));
    await clock.advanceAsync(20_000);
  }
  expect(messages).toEqual([
    'the cluster does not serve deliverytargets.sluice.dev, packagepolicies.sluice.dev: install the definitions (kubectl apply -k deploy/crds); Sluice retries until then',
  ]);
  await clock.advanceAsync(300_000);
  report(lacks('packagepolicies.sluice.dev'));
  await clock.advanceAsync(1000);
  expect(messages[1]).toContain('packagepolicies.sluice.dev');
});

test('other failures are reported without the name of the error class, once while they repeat', () => {
  const messages: string[] = [];
  const report = objectWarnings(new ManualClock(), (message) => messages.push(message));
  for (const text of ['secrets is forbidden', 'secrets is forbidden', 'no response'])
    report(new SluiceError('Refused', text));
  expect(messages).toEqual(['secrets is forbidden', 'no response']);
});
