import { expect, test } from 'vitest';
import { nextSince } from './next-since.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');
const next = (since: string, ...updated: string[]) =>
  nextSince(
    since,
    updated.map((updatedAt) => ({ updatedAt })),
    NOW,
  );

test('the next list is read from the last change on, by the clock of the host', () => {
  expect(next('2026-01-01T11:00:00Z', '2026-01-01T11:30:00Z', '2026-01-01T11:20:00Z')).toBe('2026-01-01T11:30:00Z');
  expect(next('2026-01-01T11:00:00Z', '2026-01-01T12:00:20Z')).toBe('2026-01-01T12:00:20Z');
  expect(next('2026-01-01T11:00:00Z')).toBe('2026-01-01T11:00:00Z');
});

test('a time later than now makes it miss nothing, and read no more than what may have changed since', () => {
  expect(next('2026-01-01T11:00:00Z', '2026-01-02T00:00:00Z')).toBe('2026-01-01T11:50:00Z');
  expect(next('2026-01-01T11:55:00Z', '2026-01-02T00:00:00Z')).toBe('2026-01-01T11:55:00Z');
  expect(next('2026-01-01T11:00:00Z', '2026-01-02T00:00:00Z', '2026-01-01T11:58:00Z')).toBe('2026-01-01T11:58:00Z');
});
