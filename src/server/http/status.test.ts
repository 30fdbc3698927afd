import { expect, test } from 'vitest';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { invalidObject } from '../../resource/object/invalid-object.ts';
import { failureStatus } from './status.ts';

const subject = { group: 'config.porch.kpt.dev', resource: 'repositories', kind: 'Repository', name: 'blueprints' };

test('an invalid object has its causes, with the reasons of Kubernetes', () => {
  const messages = [
    'Required value',
    'Unsupported value: 1: supported values: 2',
    'Forbidden: no',
    'Invalid value: 3: no',
  ];
  const causes = messages.map((message, index) => ({ field: `spec.f${index}`, message, path: ['spec', `f${index}`] }));
  expect(failureStatus(invalidObject('Repository.config.porch.kpt.dev "blueprints"', causes), subject, 'r1')).toEqual({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: expect.stringMatching(
      /^Repository.config.porch.kpt.dev "blueprints" is invalid: \[spec.f0: Required value, /,
    ),
    reason: 'Invalid',
    details: {
      name: 'blueprints',
      group: 'config.porch.kpt.dev',
      kind: 'Repository',
      causes: [
        { reason: 'FieldValueRequired', message: messages[0], field: 'spec.f0' },
        { reason: 'FieldValueNotSupported', message: messages[1], field: 'spec.f1' },
        { reason: 'FieldValueForbidden', message: messages[2], field: 'spec.f2' },
        { reason: 'FieldValueInvalid', message: messages[3], field: 'spec.f3' },
      ],
    },
    code: 422,
  });
});

test('an error without a field is in the message alone, which kubectl shows only where there are no causes', () => {
  const error = new SluiceError('InvalidInput', 'Kptfile: not YAML');
  const status = failureStatus(error, subject, 'r1');
  expect(status).toMatchObject({ code: 422, reason: 'Invalid', message: 'Kptfile: not YAML' });
  expect(status).not.toHaveProperty('details');
});

test('a defect reveals only the id by which the log names it', () => {
  const status = failureStatus(new TypeError('password hunter2 is not a function'), subject, 'r1');
  expect(status).toMatchObject({ code: 500, reason: 'InternalError' });
  expect(JSON.stringify(status)).not.toContain('hunter2');
  expect(status.message).toBe("Internal error occurred: see the server's log for request r1");
});

test('an internal failure has the prefix that clients know, without its cause', () => {
  const error = new SluiceError('Internal', 'package "a" already exists', { cause: new Error('hunter2') });
  const status = failureStatus(error, subject, 'r1');
  expect(status.message).toBe('Internal error occurred: package "a" already exists');
  expect(JSON.stringify(status)).not.toContain('hunter2');
});

test('a rejected client gets the time after which to try again', () => {
  expect(failureStatus(new SluiceError('TooManyRequests', 'later'), undefined, 'r1')).toMatchObject({
    code: 429,
    details: { retryAfterSeconds: 1 },
  });
});

test('the size of a response is bounded for any number of errors', () => {
  const causes = Array.from({ length: 50_000 }, (_, index) => ({
    field: `f${index}`,
    message: 'Required value',
    path: [],
  }));
  const text = JSON.stringify(failureStatus(invalidObject('Widget "a"', causes), subject, 'r1'));
  expect(text.length).toBeLessThan(40_000);
});
