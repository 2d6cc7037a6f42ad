#!/usr/bin/env node
// Starts the program of the package for this machine.
'use strict';

const { spawn } = require('node:child_process');
const { constants } = require('node:os');

const name = `countersign-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/countersign`);
} catch {
  console.error(
    `countersign: the npm package ${name}, which holds the program for this machine, is not installed. ` +
      'Install again without --omit=optional. If it does not exist, build Countersign from source.',
  );
  process.exit(4);
}

const given = process.argv.slice(2);
if (process.execve) {
  // The program takes the place of Node.js, so that nothing of it stays in memory.
  try {
    process.removeAllListeners('warning');
    process.on('warning', () => {});
    process.execve(program, ['countersign', ...given], process.env);
  } catch {
    // Not on this system: start it as a child.
  }
}

const child = spawn(program, given, { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']) {
  process.on(signal, () => child.kill(signal));
}
child.on('error', (error) => {
  console.error(`countersign: ${program} does not start: ${error.message}`);
  process.exit(4);
});
child.on('exit', (code, signal) => {
  process.exit(signal ? 128 + constants.signals[signal] : code);
});
