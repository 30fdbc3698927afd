import {
  previewSchema,
  type RevisionPreview,
  type TargetPreview,
} from '../../package/model/revision/revision-readings.ts';
import { inPackages } from '../access/in-packages.ts';
import { readRevision } from '../access/read-revision.ts';
import type { CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printPatch } from '../output/print-patch.ts';
import { printable } from '../output/printable.ts';
import { toJson, toYaml } from '../output/structured.ts';
import type { Terminal } from '../output/terminal.ts';

export interface PreviewOptions extends PlaceOptions {
  readonly output: 'patch' | 'json' | 'yaml';
  readonly target?: string;
}

/** `sluice rpkg preview`. Exit code 1 if a target cannot be read. */
export function rpkgPreview(name: string, options: PreviewOptions, invocation: Invocation): Promise<CommandResult> {
  return inPackages(options, invocation, async (access) => {
    const { terminal } = invocation;
    const parameters = options.target === undefined ? {} : { target: options.target };
    const preview = await readRevision(access, name, 'preview', previewSchema, parameters);
    if (options.output === 'json') terminal.out.write(toJson(preview));
    else if (options.output === 'yaml') terminal.out.write(toYaml(preview));
    else printPreview(terminal, name, preview);
    return preview.targets.some(({ state }) => state === 'Unreadable') ? 1 : 0;
  });
}

/** Only patches go to stdout, so that "git apply" reads it. */
function printPreview(terminal: Terminal, name: string, { revision, targets, omittedTargets }: RevisionPreview): void {
  const isOne = targets.length === 1;
  for (const target of targets) {
    const { files, message, repo = '', branch = '' } = target;
    const change = `v${revision} of ${name}`;
    if (files.length > 0 && !isOne)
      terminal.line(printable(`# target ${target.target}: ${change} on branch ${branch} of ${repo}`));
    for (const { patch } of files) printPatch(terminal, patch);
    if (target.state !== 'Changes') noteState(terminal, target, change);
    else if (message !== undefined) terminal.note(printable(`target ${target.target}: ${message}`));
    for (const file of files.filter(({ hidden }) => hidden === true))
      warn(terminal, `target ${target.target}: ${file.path} is not shown: the file in the branch may contain a Secret`);
    if (target.truncated === true) warnOfOmissions(terminal, target);
  }
  if (targets.length === 0) terminal.note(`no DeliveryTarget selects ${name}`);
  if (omittedTargets !== undefined)
    warn(terminal, `${omittedTargets} more targets were not compared; name one with --target`);
}

function noteState(terminal: Terminal, { target, state, message = '' }: TargetPreview, change: string): void {
  const because = message === '' ? '' : `: ${message}`;
  if (state === 'Unchanged') terminal.note(printable(`target ${target}: ${change} changes nothing${because}`));
  else if (state === 'NotSelected') terminal.note(printable(`target ${target} does not deliver it${because}`));
  else if (state === 'Refused') warn(terminal, `target ${target} would not deliver ${change}${because}`);
  else warn(terminal, `target ${target} cannot be read${because}`);
}

function warnOfOmissions(terminal: Terminal, { target, files, omittedFiles = 0 }: TargetPreview): void {
  const omitted = files.filter((file) => file.truncated === true).length + omittedFiles;
  warn(terminal, `target ${target}: the difference is too large; ${omitted} files are not shown`);
}

function warn(terminal: Terminal, text: string): void {
  terminal.note(`${terminal.style('yellow', 'warning:', terminal.err)} ${printable(text)}`);
}
