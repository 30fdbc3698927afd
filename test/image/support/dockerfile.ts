/** `RUN npm ci`: the name in upper case, and the rest of its line. */
export interface Instruction {
  readonly name: string;
  readonly rest: string;
}

export interface Stage {
  /** The image of `FROM`, or the name of an earlier stage. */
  readonly base: string;
  readonly name: string | undefined;
  readonly instructions: readonly Instruction[];
}

/**
 * Reads the part of the Dockerfile language that the one of Sluice uses: line continuation, comments, `ARG` before the first `FROM`, stages.
 * Throws for other instructions, so that none is left out silently.
 */
export function parseDockerfile(text: string): Stage[] {
  const lines = text
    .split('\n')
    .filter((line) => !/^\s*(?:#|$)/.test(line))
    .join('\n')
    .replaceAll(/\\\n/g, '')
    .split('\n');
  const globals = new Map<string, string>();
  const stages: (Stage & { instructions: Instruction[] })[] = [];
  for (const line of lines) {
    const [, name = '', rest = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    const stage = stages.at(-1);
    if (name === 'ARG' && stage === undefined) {
      const [key = '', value = ''] = rest.split('=');
      globals.set(key, value);
    } else if (name === 'FROM') {
      const [, base = '', as] = /^(\S+)(?: AS (\S+))?$/.exec(rest) ?? [];
      const image = base.replace(/\$\{(\w+)\}/, (_, key: string) => globals.get(key) ?? '');
      stages.push({ base: image, name: as, instructions: [] });
    } else if (stage !== undefined && SUPPORTED.has(name)) {
      stage.instructions.push({ name, rest });
    } else {
      throw new Error(`the test does not support this instruction of the Dockerfile: ${line}`);
    }
  }
  return stages;
}

const SUPPORTED = new Set(['ARG', 'RUN', 'COPY', 'WORKDIR', 'USER', 'EXPOSE', 'ENTRYPOINT', 'CMD']);
