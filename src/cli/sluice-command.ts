import { Command, type ErrorOptions } from 'commander';

/** A command whose usage errors name everything that is missing, so that one more attempt is enough. */
export class SluiceCommand extends Command {
  override createCommand(name?: string): SluiceCommand {
    return new SluiceCommand(name);
  }

  /** Called by commander for the first required option that is missing. */
  missingMandatoryOptionValue(): void {
    const missing = this.options.filter(
      (option) => option.mandatory && this.getOptionValue(option.attributeName()) === undefined,
    );
    const named = missing.map(({ flags }) => `'${flags}'`).join(', ');
    const what = missing.length === 1 ? 'required option' : 'required options';
    this.error(`error: ${what} ${named} not specified`, { code: 'commander.missingMandatoryOptionValue' });
  }

  override error(message: string, options?: ErrorOptions): never {
    super.error(this.#hinted(message, options?.code), options);
  }

  #hinted(message: string, code: string | undefined): string {
    if (code === 'commander.unknownCommand' && !message.includes('(Did you mean')) {
      const names = this.createHelp()
        .visibleCommands(this)
        .map((command) => command.name());
      return `${message}\n(commands: ${names.join(', ')})`;
    }
    // Commander suggests what only the program takes.
    return code === 'commander.unknownOption' && this.parent !== null
      ? message.replace(/\n\(Did you mean --version\?\)$/, '')
      : message;
  }
}
