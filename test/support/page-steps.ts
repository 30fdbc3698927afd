/** A command of a page, and what the page shows as its output. */
export interface PageStep {
  readonly command: string;
  readonly shown: string;
}

export interface PageSection {
  readonly title: string;
  readonly steps: readonly PageStep[];
}

/** The commands of a page after "$ ", in order, by their headings. A command continues after `\` at the end of a line. */
export function sectionsOf(page: string): PageSection[] {
  return page
    .split(/^##+ /m)
    .slice(1)
    .map((section) => {
      const [title = ''] = section.split('\n', 1);
      const blocks = [...section.matchAll(/^```\w*\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text);
      const steps = blocks
        .flatMap((block) => block.split(/^\$ /m).slice(1))
        .map((part) => {
          const [command = '', ...shown] = part
            .trimEnd()
            .replaceAll(/ \\\n\s*/g, ' ')
            .split('\n');
          return { command, shown: shown.join('\n') };
        });
      return { title, steps };
    });
}

/**
 * True if each line that a page shows is in the output, in the same order. `…` stands for any text; ages, names of pods and the widths of
 * columns differ.
 */
export function showsAs(output: string, shown: string): boolean {
  const lines = output.split('\n').map((line) => line.trim());
  let from = 0;
  for (const line of shown.split('\n').filter((text) => text.trim() !== '' && text !== '…')) {
    const found = lines.findIndex((text, at) => at >= from && patternOf(line.trim()).test(text));
    if (found < 0) return false;
    from = found + 1;
  }
  return true;
}

const VARYING = /…|\b\d+[smhd](?:\d+[smhd])?\b|\bsluice-6d5c7f9b8-\w{5}|\s+/g;

function patternOf(line: string): RegExp {
  const fixed = line.split(VARYING).map((text) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const varying = [...line.matchAll(VARYING)].map(([text]) => {
    if (text === '…') return '.*';
    if (text.trim() === '') return '\\s+';
    return text.startsWith('sluice-') ? 'sluice-6d5c7f9b8-\\w{5}' : '\\d+[smhd](?:\\d+[smhd])?';
  });
  return new RegExp(fixed.map((text, at) => `${text}${varying[at] ?? ''}`).join(''));
}
