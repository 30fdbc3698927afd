import { describe, expect, test } from 'vitest';
import { type ExecutedCommand, executedIn, isExecuted, isSamePage, withCommand } from './executed-commands.ts';

const PULL = 'https://git.example.com/owner/apps/pulls/1';
const RENAMED = 'https://git.example.com/other/renamed/pulls/1';

function command(id: string, second?: number, pull = PULL): ExecutedCommand {
  const writtenAt = second === undefined ? {} : { writtenAt: at(second) };
  const about = { url: `${pull}#issuecomment-${id}`, user: 'bob', subject: 'bob', command: '/sluice why' };
  return { id, ...writtenAt, ...about, outcome: 'done', message: '' };
}
function at(second: number): string {
  return new Date(Date.UTC(2030, 0, 1, 0, 0, second)).toISOString();
}

describe('whether a command was executed', () => {
  test.each([
    ['the last one itself', '12', 20, PULL, true],
    ['an earlier one of the same second', '9', 20, PULL, true],
    ['a later one of the same second', '13', 20, PULL, false],
    ['an earlier one', '11', 19, PULL, true],
    ['a later one', '13', 21, PULL, false],
    ['a later one after the clock of the host was set back', '13', 19, PULL, false],
    ['an earlier one from before the clock of the host was set back', '11', 21, PULL, true],
    ['the last one itself at another address', '12', 20, RENAMED, true],
    ['an earlier one as another host has numbered it', '500', 19, RENAMED, true],
    ['a later one on another host, whose ids are small', '3', 21, RENAMED, false],
  ])('%s', (_, id, second, pull, is) => {
    const comment = { id, url: `${pull}#issuecomment-${id}`, createdAt: at(second) };
    expect(isExecuted({ source: PULL, entries: [command('12', 20)] }, comment)).toBe(is);
  });

  test('what earlier versions recorded has no time, and counts by the id, whatever address the pull request has now', () => {
    const executed = { source: PULL, entries: [command('12')] };
    for (const pull of [PULL, RENAMED]) {
      const isAt = (id: string) => isExecuted(executed, { id, url: `${pull}#issuecomment-${id}`, createdAt: at(30) });
      expect(['9', '12', '13', '100'].map(isAt)).toEqual([true, true, false, false]);
    }
    expect(() => withCommand(executed, RENAMED, command('12', 20, RENAMED))).toThrow('was executed already');
  });
});

test('the commands of a pull request stay listed when its repository was renamed, and not in another pull request', () => {
  const before = withCommand(undefined, PULL, command('1', 1));
  const renamed = withCommand(before, RENAMED, command('2', 2));
  expect(renamed).toMatchObject({ source: RENAMED, entries: [{ id: '1' }, { id: '2' }] });
  expect(executedIn(renamed, PULL)).toHaveLength(2);
  const other = withCommand(renamed, 'https://git.example.com/other/renamed/pulls/11', command('3', 3));
  expect(other.entries).toHaveLength(1);
  expect(executedIn(other, PULL)).toEqual([]);
});

test('pages are the same by their numbers', () => {
  expect(isSamePage(PULL, RENAMED)).toBe(true);
  expect(isSamePage(PULL, `${RENAMED}1`)).toBe(false);
  expect(isSamePage(PULL, `${RENAMED}#issuecomment-1`)).toBe(false);
});
