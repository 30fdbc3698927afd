import { expect, test } from 'vitest';
import { eventOfStep } from './event-of-step.ts';

test.each([
  ['Proposed', { from: 'Draft', by: 'anna' }, 'Proposed'],
  ['Published', { from: 'Proposed', by: 'anna' }, 'Approved'],
  ['Draft', { from: 'Proposed', by: 'anna' }, 'Rejected'],
  ['DeletionProposed', { from: 'Published', by: 'anna' }, 'DeletionProposed'],
  ['Published', { from: 'DeletionProposed', by: 'anna' }, 'DeletionRejected'],
  ['GateOpened', { by: 'anna' }, 'GateOpened'],
  ['Condition', { by: 'anna', status: 'True' }, 'ConditionMet'],
  ['Condition', { by: 'anna', status: 'False' }, undefined],
  ['Published', { from: 'Proposed', by: 'controller:approval' }, undefined],
  ['GateOpened', { by: 'resolver:ipam' }, undefined],
  ['Published', { by: 'anna' }, undefined],
  ['Edited', { by: 'anna' }, undefined],
  ['Removed', {}, undefined],
])('%s with %o is the event %s', (event, fields, reason) => {
  const entry = { at: 0, level: 'info', event, subject: 'packages.web.v1', message: 'said', fields } as const;
  expect(eventOfStep(entry)).toEqual(reason === undefined ? undefined : { type: 'Normal', reason, message: 'said' });
});

test('broken glass is a warning', () => {
  const entry = { at: 0, level: 'warn', event: 'BreakGlass', subject: 'packages.web.v1', message: 'said' } as const;
  const expected = { type: 'Warning', reason: 'BreakGlass', message: 'said' };
  for (const by of ['anna', 'controller:x']) expect(eventOfStep({ ...entry, fields: { by } })).toEqual(expected);
});
