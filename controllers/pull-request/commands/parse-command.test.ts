import { describe, expect, test } from 'vitest';
import { parseCommand } from './parse-command.ts';

describe('parseCommand', () => {
  test.each([
    ['/sluice why', { verb: 'why' }],
    ['/sluice   approve  \nlooks good', { verb: 'approve' }],
    ['/sluice rerun', { verb: 'rerun' }],
    ['/Sluice Why', { verb: 'why' }],
    [' /sluice why', { verb: 'why' }],
    [
      '/sluice reject too \u001b[31mexpensive\u202e',
      { verb: 'reject', reason: expect.not.stringMatching(/[\u001b\u202e]/) },
    ],
    ['/sluice set example.com/Tested true', { verb: 'set', type: 'example.com/Tested', status: 'True', message: '' }],
    ['/sluice set T False a b', { verb: 'set', type: 'T', status: 'False', message: 'a b' }],
  ])('%j', (body, command) => {
    expect(parseCommand(body)).toEqual({ command });
  });

  test.each([
    '',
    'please /sluice approve',
    '> /sluice approve',
    '    /sluice approve',
    '`/sluice approve`',
    '/sluiceapprove',
    'fine\n/sluice approve',
    '```\n/sluice approve\n```',
  ])('%j is none', (body) => {
    expect(parseCommand(body)).toBeUndefined();
  });

  test.each([
    ['/sluice', /there is no such command; the commands are \/sluice why/],
    ['/sluice merge', /there is no such command/],
    ['/sluice aprove', /there is no such command \(did you mean \/sluice approve\?\); the commands are/],
    ['/sluice adopt', /is for pull requests of users/],
    ['/sluice approve now', /takes no further words/],
    ['/sluice reject ', /a reason is missing/],
    ['/sluice set T Maybe', /then True, False or Unknown/],
    [`/sluice reject ${'x'.repeat(3000)}`, /shorten it/],
  ])('%j cannot be read', (body, problem) => {
    expect(parseCommand(body)).toEqual({ problem: expect.stringMatching(problem) });
  });

  test('texts are bounded', () => {
    const parsed = parseCommand(`/sluice reject ${'x '.repeat(900)}`);
    expect(JSON.stringify(parsed).length).toBeLessThan(600);
  });

  test.each([
    ['/sluice approve apps.web.v1', { target: 'apps.web.v1', command: { verb: 'approve' } }],
    ['/sluice reject apps.web.v1 no', { target: 'apps.web.v1', command: { verb: 'reject', reason: 'no' } }],
    ['/sluice reject apps.api.v2 no', { problem: 'apps.api.v2 is not proposed in this pull request' }],
    ['/sluice reject no', { command: { verb: 'reject', reason: 'no' } }],
    ['/sluice reject apps.web.v1', { target: 'apps.web.v1', problem: expect.stringContaining('a reason is missing') }],
  ])('%j in a pull request of several package revisions', (body, parsed) => {
    expect(parseCommand(body, ['apps.api.v1', 'apps.web.v1'])).toEqual(parsed);
  });
});
