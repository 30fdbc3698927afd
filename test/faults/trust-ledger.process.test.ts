import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { ledgerPath } from '../../src/app/trust/open-trust.ts';
import { SqliteTrustLedger } from '../../src/package/trust/sqlite/sqlite-trust-ledger.ts';

const WRITER = fileURLToPath(new URL('./ledger-writer.ts', import.meta.url));
const reportSchema = z.object({
  own: z.string().optional(),
  package: z.string().optional(),
  sequence: z.number().optional(),
  key: z.string().optional(),
  revoked: z.string().optional(),
});
type Report = z.infer<typeof reportSchema>;

const children = new Set<ChildProcess>();
const folders: string[] = [];
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-ledger-'));
  folders.push(folder);
  return folder;
}

/** Runs a writer; resolves with its reports when it has ended. `onReport` may kill it. */
async function write(words: string[], onReport: (report: Report, child: ChildProcess) => void): Promise<void> {
  const child = spawn(process.execPath, [WRITER, ...words], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.add(child);
  const ended = once(child, 'close');
  createInterface({ input: child.stdout }).on('line', (line) => onReport(reportSchema.parse(JSON.parse(line)), child));
  await ended;
  children.delete(child);
}

test('processes that start at the same time on a new data folder have one key', async () => {
  for (let round = 0; round < 3; round += 1) {
    const folder = newFolder();
    const own: string[] = [];
    const start = (name: string) => write([folder, name, 'start'], (report) => own.push(report.own ?? ''));
    await Promise.all(['a', 'b', 'c', 'd'].map(start));
    expect(own).toHaveLength(4);
    expect(new Set(own).size).toBe(1);
    expect(readdirSync(join(folder, 'keys'))).toEqual(['statement-key']);
    const ledger = SqliteTrustLedger.open({ path: ledgerPath(folder) });
    expect(ledger.keys().map(({ fingerprint }) => fingerprint)).toEqual([own[0]]);
    ledger.close();
  }
});

test('two processes that are killed while they write lose no acknowledged write, and no mark decreases', async () => {
  const folder = newFolder();
  const path = ledgerPath(folder);
  const marks = new Map<string, number>();
  const keys = new Set<string>();
  const revoked = new Set<string>();
  const note = ({ package: name, sequence = 0, key, revoked: ended }: Report) => {
    if (name !== undefined) marks.set(name, Math.max(sequence, marks.get(name) ?? 0));
    if (key !== undefined) keys.add(key);
    if (ended !== undefined) revoked.add(ended);
  };
  for (let life = 0; life < 6; life += 1) {
    const writers = ['a', 'b'].map((name) => {
      // Numbers of the writes after which they are killed.
      let left = 10 + Math.floor(Math.random() * 40);
      return write([folder, `${name}${life}`], (report, child) => {
        note(report);
        left -= 1;
        if (left === 0) child.kill('SIGKILL');
      });
    });
    await Promise.all(writers);
    const database = new DatabaseSync(path);
    expect(database.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
    database.close();
    const ledger = SqliteTrustLedger.open({ path });
    for (const [name, sequence] of marks) {
      const mark = ledger.mark({ repository: 'r', package: name, workspace: 'v1' });
      expect(mark?.sequence).toBeGreaterThanOrEqual(sequence);
      marks.set(name, mark?.sequence ?? 0);
    }
    const known = new Map(ledger.keys().map((key) => [key.fingerprint, key]));
    expect([...keys].filter((key) => !known.has(key))).toEqual([]);
    expect([...revoked].filter((key) => known.get(key)?.revocation === undefined)).toEqual([]);
    ledger.close();
  }
  expect(marks.size).toBeGreaterThan(0);
  expect(revoked.size).toBeGreaterThan(0);
});
