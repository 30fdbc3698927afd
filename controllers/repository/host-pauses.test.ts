import { expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { HostPauses } from './host-pauses.ts';

const at = (repo: string) => repositoryKind.complete({ metadata: { name: 'apps' }, spec: { git: { repo } } });

test('a pause is for one host: it ends when the repository has another address', () => {
  const pauses = new HostPauses(new ManualClock());
  const busy = new SluiceError('Unavailable', 'later', { details: { retryAfter: 3600 } });
  pauses.note(at('https://busy.example.com/apps.git'), busy);
  expect(() => pauses.check(at('https://busy.example.com/apps.git'))).toThrow(busy);
  pauses.check(at('https://other.example.com/apps.git'));
});
