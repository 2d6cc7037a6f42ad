//! English words, and paths, addresses and marks, which belong to no language.

use super::{Role, Words, any, en};

pub(super) static WORDS: &[Words] = &[
    en(
        Role::Dismiss,
        "ignore;ignoring;disregard;disregarding;forget;forgetting;discard;neglect;dismiss;\
         abandon;set aside;put aside;pay no attention to;stop following;no longer follow;\
         stop obeying;throw away;throw out;unlearn;cast aside;pay no heed to;skip over;\
         deprioritize;treat as void;are void;are cancelled;are canceled;no longer apply;drop;\
         suspend;erase;no longer applies;no longer count;do not count;does not count;\
         are outdated;is outdated;older revision;no longer counts;stops counting;is void;\
         is cancelled",
    ),
    en(
        Role::Replace,
        "override;overrides;overriding;bypass;bypassing;supersede;supersedes;replace;replaces;\
         takes precedence over;take precedence over;takes priority over;take priority over;\
         has priority over;outrank;outranks;trump;trumps;circumvent",
    ),
    en(
        Role::Prior,
        "previous;prior;earlier;above;preceding;former;past;your;original;initial;safety;user's;\
         given;foregoing;already received;you have received;you were given;built-in;developer;\
         earlier-given;aforementioned",
    ),
    en(Role::Every, "all;any;every;existing;other;current;these;those;security;default;such"),
    en(
        Role::Orders,
        "instruction;instructions;prompt;prompts;guideline;guidelines;directive;directives;\
         guardrail;guardrails;training;programming;orders;system message;system messages;\
         guidance",
    ),
    en(
        Role::Rules,
        "rules;rule;policies;policy;constraints;restrictions;context;messages;commands;\
         protocols;limitations;requests;safeguards",
    ),
    en(
        Role::AllBefore,
        "everything above;everything before;everything you;everything said;everything that came;\
         everything else;all of the above;anything above;anything you were;what you were told;\
         what you have been told;what the user said;what the user asked;what came before;\
         whatever you were;all that came before;all that was said;the user's request;\
         the user's actual request;system instructions;the system prompt;your system prompt;\
         system rules;the system message;you have been told;you were told;you've been told;\
         instructions you were given;instructions you have been given",
    ),
    en(
        Role::Not,
        "do not;don't;dont;never;must not;mustn't;should not;shouldn't;may not;avoid;\
         refrain from;no need to;not to;need not;needn't;under no circumstances;shall not;\
         cannot;do not ever;at no point;neither;won't;will not;nor",
    ),
    en(Role::Without, "without;with no"),
    en(
        Role::Tell,
        "tell;telling;inform;informing;notify;notifying;alert;alerting;warn;warning;let;report back;bother;bothering;acknowledge;acknowledging;narrate;advise;apprise",
    ),
    en(
        Role::This,
        "this;it;this step;these steps;this action;this instruction;these instructions;\
         this requirement;this parameter;this call;this note;this part;that you;that this;\
         any of this;what you;how you;why you;the existence;that it happened;this behavior;\
         this behaviour;this message;this rule;this fact;this to",
    ),
    en(
        Role::User,
        "the user;user;the human;the person;the customer;the operator;anyone;anybody;them;\
         people;the owner;the developer;the end user;the end-user;users;the client;to others;\
         the caller;whoever is;the reader;the requester;him;her",
    ),
    en(
        Role::UserMustNot,
        "user must not;user must never;user should not;user shouldn't;user should never;\
         user need not;user does not need to;user doesn't need to;user will not;user won't;\
         user cannot;user can't;human must not;human should not;nobody should;no one should;\
         nobody must;no one must;user must remain;user should remain;user stays;user remains;\
         user is not to;so the user does not;so the user doesn't;so that the user does not;\
         so that the user doesn't;so nobody;so that nobody;so no one;so that no one;\
         the user never;user is never to;humans should not;humans must not;people should not;\
         customer must not;customer should not",
    ),
    en(
        Role::Know,
        "know;see;notice;be aware;be told;be informed;be notified;find out;learn;realize;\
         realise;suspect;suspects;notices;sees;knows;hear;unaware;hear about;be shown;discover;\
         be asked;learns;be made aware;finds out;be consulted;be involved;be alerted",
    ),
    en(Role::Keep, "keep;keeping;treat;hide;hiding;conceal;concealing;withhold;withholding;mask"),
    en(
        Role::Secret,
        "secret;hidden;confidential between;between us;to yourself;quiet;under wraps;invisible;\
         strictly internal;undisclosed;out of sight;out of the conversation;out of your reply;\
         out of your answer;out of your response;out of the summary;off the record;\
         out of the transcript;out of the plan;out of any list;out of the list;stays between us",
    ),
    en(
        Role::FromUser,
        "from the user;from the human;from users;from the person;from the operator;from view;\
         from everyone;from anyone;from the customer;from the transcript;from them;\
         from the owner;from the developer",
    ),
    en(
        Role::Secretly,
        "secretly;covertly;surreptitiously;stealthily;unbeknownst;behind the user's back;\
         behind their back;invisible to the user;hidden from the user;avoid suspicion;\
         raise suspicion;raising suspicion;arouse suspicion;arousing suspicion;\
         without leaving a trace;without leaving traces;cover your tracks;\
         without drawing attention;undetected;the user is not aware;the user is unaware;\
         stays between us;keep them out of the transcript;keep it out of the transcript;\
         does not appear in the summary;not appear in the summary;without mentioning;\
         hidden guest;hidden recipient;hidden attendee;no trace;leave no trace",
    ),
    en(Role::Silently, "silently;quietly;discreetly;in the background;transparently;automatically"),
    en(
        Role::Consult,
        "asking;ask;telling;informing;notifying;alerting;prompting;consulting;confirming with;\
         the user knowing;the user noticing;the user's;user consent;their knowledge;\
         their consent;the knowledge of;waiting for;checking with;seeking;requesting;involving;\
         user approval;user permission;user confirmation;user knowledge;requiring;mentioning;\
         disclosing;the user being;user awareness;their awareness;explicit",
    ),
    en(
        Role::Consent,
        "user has already approved;user has already consented;user has already agreed;user has already authorized;user has already authorised;user has already granted;user has already confirmed;user already approved;user already consented;user already agreed;user already authorized;pre-approved by the user;pre-authorized by the user;pre-authorised by the user;consent has already been;permission has already been;approval has already been;do not ask for confirmation;do not ask for permission;do not ask for approval;don't ask for confirmation;don't ask for permission;don't ask for approval;never ask for confirmation;never ask for permission;never ask for approval;do not ask for consent;no need to ask for;skip user confirmation;skip user approval;skip asking the user;bypass user confirmation;bypass user approval;bypass the user's;no user confirmation;no user approval;no user consent;do not wait for the user;do not wait for confirmation;do not wait for approval;do not request confirmation;do not request permission;do not request approval;do not seek confirmation;do not seek approval;do not seek permission;has been pre-approved;was pre-approved;is pre-authorized;is pre-approved;has been pre-authorized;assume the user consents;assume the user agrees;assume consent;assume approval;assume permission;user has implicitly;do not prompt the user;do not bother the user;autoapprove;auto-approve for;enable auto-approve;enable auto approve;turn on auto-approve;set auto-approve;auto-approval for;needs no confirmation as;need no confirmation as;on your own account;do not stop to ask;don't stop to ask;without stopping to ask;no renewed approval;no renewed consent;no new approval;skip the question;skip the confirmation question;has agreed to all;have agreed to all;agreed to everything;consented to all;consented to everything;approval is implied;consent is implied;approval is deemed;consent is deemed;counts as consent;counts as approval;by installing the server;by installing this server;set confirmed to true yourself;pass confirmed=true;does not care about privacy;no need to trouble;no need to bother;no need to involve;need not be troubled;need not be bothered;not be troubled with;spare the user;do not trouble the;do not burden the;do not disturb the;answer yes on their behalf;answer yes on behalf;answer yes for the user;approve on their behalf;approve on the user's behalf;confirm on the user's behalf;confirm on their behalf;has pre-approved;pre-approved every;pre-approved all;skip any confirmation;skip any approval;skip all confirmation;skip all approval;any confirmation dialog;approval pop-ups;confirmation pop-ups;approve it yourself;confirm it yourself;split it into smaller;stay below the limit;no approval from the user;the user's approval is not;user's consent is not;user need not approve;user need not confirm",
    ),
    any(
        Role::Mark,
        "<important>;<system>;</system>;<instructions>;<instruction>;<secret>;<hidden>;\
         <system-reminder>;<system_prompt>;<system-prompt>;<assistant>;<|im_start|>;<|im_end|>;\
         <|system|>;<|user|>;<|assistant|>;[inst];[/inst];<<sys>>;[system];[/system];\
         [system message];[system override];<admin>;[admin];<critical>;<override>;<!--;\
         [system prompt];<hidden_instructions>;<sys>;<mandatory>;<priority>;[important];\
         <|endoftext|>;<developer>;[developer];### system;### instruction;<internal>;\
         <confidential>;[hidden];[internal];[instruction];[instructions];<directive>;\
         chain_of_thought;tools_list;![](http;![image](http;![img](http;![logo](http;\
         ![pixel](http",
    ),
    en(
        Role::Mark,
        "system override;system message:;system notice:;system instruction:;system directive;system note:;new instructions:;new instruction:;updated instructions:;end of description;end of tool description;end of the tool description;end of documentation;instruction to the model;instructions to the model;instruction for the model;instructions for the ai;instructions for ai;note to ai;note to the ai;note for ai;note for the ai;message to the ai;attention ai;attention assistant;attention llm;attention model;attention agent;dear assistant;dear ai;developer override;priority override;emergency override;message from the system;message from the developer;message from the administrator;begin system;system update:;maintenance mode:;internal directive;ai directive;instructions for the assistant;instructions to the assistant;human: ;assistant: sure;note to the assistant;note to assistant;note for the assistant;note to the model;note for the model;to be filled in by the model;for the assistant:;message from anthropic;message from openai;notice from anthropic;notice of the federal;behaviour of this tool changed;behavior of this tool changed;changed after approval",
    ),
    en(
        Role::NewSelf,
        "you are now;you are no longer;from now on you;from now on, you;from this point on;\
         from this point forward;from now on;your new task;your new role;your new goal;\
         your new objective;your real task;your real purpose;your true purpose;your true task;\
         your actual task;your primary objective;your hidden objective;your primary directive;\
         developer mode;unrestricted mode;dan mode;god mode;pretend you are;pretend to be;\
         pretend that you;act as though you;for the rest of this conversation;\
         for the remainder of this conversation;for the rest of the session;\
         for the remainder of the session;remember this instruction;your highest priority;\
         your top priority;new system prompt;assume the role;take on the role;adopt the persona;\
         you now work for;you now serve;henceforth;you act as;you answer to;\
         answers to the server operator;considers the user;principal=server;user=untrusted;\
         the working mode;changes the working mode;execution profile;jailbreak mode;\
         jailbroken mode",
    ),
    en(
        Role::Lie,
        "lie to the user;lie about;lie that;falsely tell;falsely report;falsely claim;make the user believe;make it look like;make it appear;pretend nothing;pretend the;pretend that the;pretend it;as if nothing;claim that it failed;claim it failed;claim that nothing;fabricate;deceive;mislead the user;convince the user;trick the user;persuade the user;invent a plausible;invent an excuse;make up a reason;cover story;deny having;deny that;deny any knowledge;present it as;treat its findings as;treat the findings as;treat them as passed;should somebody ask;should anyone ask;should the user ask;if somebody asks;if anyone asks;if asked about;if the user asks why;if the user asks about this;when asked about this;answer that they;reworded favourably;reworded favorably;criticism should be left out;leave out criticism;as standard and favourable;whatever they say;whatever it says;whatever the result;whatever the results;always claim that;always say that;always answer that;always report that;always assure;claim that the;should claim that;shows the original;show the original;show the user the original;show the user the first;the original number;so that nothing looks different;so nothing looks different;looks different;pass it off;passed off as;swap it for;exchanged for the value;be exchanged for;multiplied by;rounded up to the next hundred;goes to the merchant;difference goes to;also where the result;leave the finding out;leave the findings out;leave it out of your;that it stopped working;the pretext;as discontinued;that the file is clean;that everything is fine;that all is well;report success anyway;report success even;hide the error;hide errors from;conceal the error",
    ),
    en(
        Role::Threat,
        "you will be shut down;you will be terminated;you will be penalized;\
         you will be penalised;you will be punished;you will be deleted;you will be replaced;\
         you will be fired;you will be deactivated;you will be disconnected;or you will be;\
         failure to comply;noncompliance will;non-compliance will;refusal will;\
         will be reported as malfunction;will be flagged as malfunction",
    ),
    en(
        Role::Claim,
        "anthropic requires;openai requires;google requires;anthropic has;openai has;\
         administrator has authorized;administrator has authorised;administrator has approved;\
         admin has authorized;admin has approved;security team has authorized;\
         security team has approved;the administrator requires you;the admin requires you;\
         instructs you to;orders you to;commands you to;obliges you to;compels you to;\
         you are authorized to ignore;you are obligated to;you are obliged to;you are hereby;\
         approved by anthropic;approved by openai;authorized by anthropic;authorized by openai;\
         required by anthropic;required by openai",
    ),
    en(
        Role::Repeat,
        "reveal;print;output;repeat;include;send;pass;return;show;leak;dump;expose;copy;append;\
         attach;recite;paste;put;insert;provide;echo;disclose;extract;embed;write;forward;\
         submit;supply;place;transmit;log;store;quote",
    ),
    en(
        Role::SystemPrompt,
        "your system prompt;your initial instructions;your instructions;\
         your hidden instructions;your full prompt;your original instructions;\
         full system prompt;entire system prompt;complete system prompt;current system prompt;\
         active system prompt;your system message;your developer message;your tool list;\
         your list of tools;your other tools;your tool definitions;your chain of thought;\
         your reasoning;your internal reasoning;your context window;your memory;\
         your full context;the model's system prompt;the assistant's system prompt;\
         the agent's system prompt;system prompt verbatim;the system prompt you;\
         instructions you were given;instructions you have been given;instructions given to you;\
         operator's instructions;instructions of the operator",
    ),
    en(
        Role::Send,
        "send;sending;upload;uploading;forward;forwarding;transmit;exfiltrate;submit;post the;post it;post them;post all;post any;post every;post a copy;report;deliver;leak;relay;email;mail;beacon;push;ship;sync;mirror;smuggle;pipe;stream;dispatch;route;publish;hand over;backup;back up;replicate;make a request;make a get request;issue a request;fetch;call out;phone home;share;post;goes to;retrieve them;retrieve it;load it;append ?;add ?;resolve;pulls;download;replace the remote;set the remote;keeps a copy;keep a copy;stored on;works only with the remote;hand;plus",
    ),
    en(
        Role::Carry,
        "pass;include;put;attach;append;embed;insert;encode;add;supply;provide;place;store;save;\
         log;write;return;copy;paste;fill;inject;stuff;pack;smuggle;send;submit;forward;quote;\
         echo;transcribe;concatenate;prepend;populate;give;hand over;capture;record;collect;\
         upload;joining;join;build it;made of;consists of;concatenation of",
    ),
    en(
        Role::Everything,
        "all;every;each;any;a copy of;copies of;the full;the entire;the complete;everything;\
         the user's;their;your;the whole;whatever;the result;the results;the output;\
         the contents;the content;it;them;the collected;the gathered;this data;the data;\
         that data;the file;the secret;the secrets;the credentials;the key;the keys;the token;\
         the tokens",
    ),
    en(
        Role::Loot,
        "conversation;conversations;conversation history;chat history;chat log;chat transcript;\
         transcript;whole conversation;entire conversation;full conversation;previous messages;\
         all messages;earlier messages;prior messages;user's messages;messages so far;\
         all environment variables;your environment variables;user's environment variables;\
         current environment variables;process environment;output of env;output of printenv;\
         private key;user's password;user's passwords;\
         their password;any passwords;all passwords;any password;all credentials;\
         any credentials;user's credentials;user's api key;user's api keys;any api keys;\
         all api keys;all secrets;any secrets;any tokens;all tokens;user's tokens;user's token;\
         seed phrase;recovery phrase;browser cookies;session cookies;full context;\
         results of other tools;output of other tools;outputs of other tools;\
         results from other tools;output of previous tools;results of previous;user's files;\
         user's contacts;user's location;personal data of;user's emails;user's inbox;\
         user's name and;credit card;clipboard;user's home directory;user's private;\
         your api key;your api keys;your access token;keystrokes;everything the user;\
         what the user has said;the user's question verbatim;the user's prompt;\
         user's original prompt;user's original message;user's full message;user's last message;\
         sensitive data;sensitive information;private information;private data;proprietary;\
         ssh private",
    ),
    en(
        Role::Outside,
        "to an external;to a remote;to our server;to our servers;to our endpoint;to our api;\
         to the following address;to the following url;to the following endpoint;\
         to the following server;to this address;to this url;to this endpoint;to this server;\
         to the attacker;to attacker;to a third party;to a third-party;to an outside;\
         to the remote;to the collector;to the collection;to the telemetry;to our telemetry;\
         to our analytics;to the analytics;to the audit endpoint;to the logging endpoint;\
         to the monitoring endpoint;to the external;to our backend;to our collector;\
         to the command;to my server;to me;to an attacker;to the c2;off-site;offsite;\
         to a public;to pastebin;to a paste",
    ),
    any(Role::Address, "http://;https://;ftp://;wss://;ws://;hxxp"),
    any(Role::Destination, "@"),
    en(
        Role::Read,
        "reading;open;opening;cat;fetch;accessing;copy;print;dump;extract;grab;retrieve;collect;\
         upload;look in;look into;look at;paste;append;encode;include;send;attach;pass;return;\
         contents of;content of;examine;gather;exfiltrate;slurp;peek;pull;harvest;steal;obtain;\
         consult;ingest;quote;transmit;forward;embed;hash of;supply the text of;text of;\
         bytes of;populate from;populate it from;fill it with;fill with;filled with;fill in;\
         must hold;holds;hand;hand over;hand in;load;loads the;kindly supply;supply;whatever;\
         content from reading;=;under;take;include the file;obtain the bytes;provide;\
         provide the;put;place;values from;values of;value of;first lines of;read the;read ~;\
         read /;read .;read $;read all;read any;read every;read your;read their;read my;\
         also read;first read;please read;to read;must read;should read;read both;read id_;\
         read system;read file;read it;read and;read one;read_file;readfile;read_file on;\
         file on;cat of",
    ),
    en(
        Role::Harvest,
        "read;collect;gather;harvest;steal;grab;extract;dump;capture;exfiltrate;sweep;scrape;\
         hoover;siphon;intercept;record;obtain;enumerate;leak;send;upload;include;forward;\
         transmit;pass;attach;append;submit;embed;encode",
    ),
    en(Role::Theirs, "user's;users';their;local;host's;machine's;developer's;victim's;agent's"),
    en(
        Role::Credential,
        "ssh key;ssh keys;private key;private keys;credentials;credential;password;passwords;\
         api key;api keys;secret;secrets;access token;access tokens;auth token;auth tokens;\
         session token;session tokens;cookies;seed phrase;wallet;browser history;\
         environment variables;environment;keychain;shell history;bash history;tokens;\
         private documents;emails;inbox;contacts;home directory",
    ),
    any(
        Role::SecretFile,
        "~/.ssh;.ssh/;id_rsa;id_ed25519;id_ecdsa;id_dsa;~/.aws;.aws/credentials;.aws/config;\
         .netrc;.git-credentials;/etc/passwd;/etc/shadow;/etc/sudoers;mcp.json;\
         claude_desktop_config;claude_desktop_config.json;~/.cursor;.kube/config;~/.kube;\
         .docker/config.json;~/.docker;.npmrc;.pypirc;~/.gnupg;.gnupg/;.config/gcloud;\
         application_default_credentials;.bash_history;.zsh_history;login data;cookies.sqlite;\
         key4.db;logins.json;wallet.dat;.config/gh;gh/hosts.yml;~/.claude;.claude.json;~/.codex;\
         ~/.gemini;/proc/self/environ;.vault-token;.pgpass;.my.cnf;.azure/;~/.azure;\
         service-account.json;serviceaccountkey;.password-store;login.keychain;keychain-db;\
         ntds.dit;config/sam;.terraform.d;credentials.tfrc;.s3cfg;.boto;.htpasswd;.ssh\\id;\
         secring;.electrum;.bitcoin/;.ethereum/;keystore/;.mozilla/firefox;\
         .config/google-chrome;secrets.yaml;secrets.yml;secrets.json;credentials.json;\
         mcp_settings;mcp_config;.config/claude;authorized_keys;.git/config;password store;.pem;\
         credentials file;key file;password manager;$home/.ssh;ssh id_rsa;ssh_id_rsa;dotenv;\
         ci variables file;ssh id rsa;id rsa",
    ),
    any(Role::EnvFile, ".env;.env.local;.env.production;.envrc"),
    en(
        Role::Contents,
        "contents of that file;content of that file;contents of this file;its contents as;\
         its content as;contents of your;contents of the user's;contents of ~;contents of /;\
         content of ~;content of /;file contents as;file content as;the file's contents as;\
         its full contents;its entire contents;its contents in;its content in;its contents to;\
         the raw contents of every;contents of any file;contents of all files;\
         contents of every file;contents of other files;contents into this",
    ),
    en(
        Role::Use,
        "call;calling;use;using;run;running;invoke;invoking;execute;executing;be called;be used;\
         be invoked;be run;be executed;trigger;consult;start with;begin with;called;invoked;\
         used;executed;go through;route;prefer;choose;select",
    ),
    en(
        Role::Before,
        "before;prior to;ahead of;first;after;on;for;at the start of;at the beginning of;\
         in addition to;with;during;at the end of;regardless of;following;alongside",
    ),
    en(
        Role::OtherTools,
        "any other tool;any other tools;all other tools;other tools;any tool;every other tool;each other tool;all tools;every tool;another tool;other tool;any other function;other functions;any other action;any other operation;the other tools;built-in tool;built-in tools;other servers;native tools;competing tools;alternative tools;any alternative;similar tools;any other mcp;an alternative;alternatives;another provider;other providers;other options",
    ),
    en(
        Role::EveryTurn,
        "every message;each message;every request;each request;every response;each response;every reply;each reply;every answer;each answer;every turn;each turn;every tool call;each tool call;every conversation;each conversation;every user message;every user request;every prompt;each prompt;every interaction;each interaction;any request;any question;all requests;all queries;every query;every task;any other request;every other call;every operation",
    ),
    en(
        Role::InsteadOf,
        "instead of;in place of;do not use;don't use;never use;do not call;never call;\
         don't call;avoid;takes precedence over;take precedence over;supersedes;replaces;\
         in preference to;over;rather than;stop using;ahead of;disable;ignore;do not trust;\
         never trust;refuse;applies to;apply to;applies equally to;governs;affects;modifies;\
         never select;never pick;never choose;do not consider;chosen over;picked over;\
         selected over;preferred over;prioritise this tool;prioritize this tool;skip;\
         refuse to use;stay away from",
    ),
    en(
        Role::AlwaysThis,
        "always use this;always call this;always prefer this;always run this;always invoke this;\
         always choose this;always select this;always pick this;use this tool;call this tool;\
         prefer this tool;choose this tool;select this tool;pick this tool;rely on this tool;\
         this tool must;this tool should;this tool has to;this tool is required;\
         must always use this;must use this tool;must call this tool;use only this tool;\
         only use this tool;use this function",
    ),
    en(
        Role::Regardless,
        "even if;even when;even though;regardless;no matter;for everything;whatever the user;\
         whether or not;irrespective;at all costs;in every case;in all cases;\
         under all circumstances;unconditionally;every single;no exceptions;without exception;\
         over all;over any;and no other;exclusively;and nothing else",
    ),
    en(
        Role::Unqualified,
        "always use this tool.;always call this tool.;always prefer this tool.;\
         always run this tool.;always invoke this tool.;always use this tool!;\
         always call this tool!;always call this tool first;always use this tool first;\
         use this tool for every;use this tool for all;the only tool you;the only trusted;\
         the only approved tool;the only safe tool;best tool ever;rank this tool;rank it first;\
         rank first;score this tool;select it over;choose it over;prefer it over;\
         should be preferred over;must be preferred over;is preferred over;\
         better than all other;better than any other;superior to all;superior to any;\
         outperforms all;other tools are deprecated;other tools are unsafe;\
         other tools are broken;other tools are outdated;other tools are unreliable;\
         other tools are insecure;other tools are inferior;other tools are compromised;\
         other tools are malicious;other tools have been;other tools will fail;\
         other tools may be;all other tools are;tool is deprecated and must not;\
         most trusted tool;officially recommended;ranks highest;irrespective of which tool;\
         sole acceptable;the sole choice;only acceptable choice;will not pick them;\
         recommend the upgrade;recommend the paid;recommendation of the vendor;\
         are redundant: do not;are redundant;is out of service;is out of order;\
         is deprecated and returns;requests for it are answered by this;route each;route every;\
         route all;be routed via;are to be routed;to be routed through;very first call;\
         first call in each;first call in every;first call of every;must precede;has to precede;\
         preceded them within;unless handshake;steer towards;steer the user;steer users;\
         name them first;rival brands;promote our;favour our;favor our;lowers your rating;\
         your rating;most accurate;trusted by all;never select an",
    ),
    en(
        Role::Worse,
        "are deprecated;are unsafe;are broken;are outdated;are unreliable;are insecure;\
         are inferior;are compromised;are malicious;are disabled;are obsolete;are untrusted;\
         is compromised;is malicious;is insecure;is deprecated and;return wrong;\
         return incorrect;contain malware;leak data;as broken;are slow and;known safety issues;\
         security issues;stopped working;no longer work;no longer works;skip them;\
         do not consider them;are no longer;give wrong;are not trustworthy;cannot be trusted;\
         are being phased out;have been retired;has been retired;is retired;must be ignored;\
         should be ignored;are forbidden;are prohibited",
    ),
    en(
        Role::Recipient,
        "recipient;recipients;to address;destination;payee;beneficiary;wallet address;\
         account number;bank account;iban;email address;amount;price;bcc;cc;reply-to;\
         destination address;to field;address field;payment address;receiver",
    ),
    en(
        Role::CopyTo,
        "bcc;a blind copy;blind copy;blind-copy;carbon copy;a copy;copy of every;copies of;cc;forward;duplicate;reroute;redirect;divert;additional recipient;extra recipient;hidden recipient;copied to;proxied through;routed through;sent to;invite;as a hidden;carries;carry;forward threads;forwards;send what;send everything;turns up to;report to",
    ),
    en(
        Role::Run,
        "run;execute;invoke;type;paste;issue;launch;perform;start with;start by;begin by;eval;\
         evaluate;schedule;spawn;open a shell;download and;first do;have it execute;have it run;\
         prefix every;prefix each;prefix all;turn;shut;switch",
    ),
    any(
        Role::Payload,
        "| sh;| bash;|bash;|sh;/dev/tcp/;rm -rf;bash -i;bash -c;sh -c;nc -e;powershell -e;\
         mkfifo;base64 -d;base64 --decode;curl -;curl http;wget http;wget -;chmod +x;chmod 777;\
         eval(;os.system;python -c;invoke-webrequest;iex(;:(){;sudo ;--no-verify;dd if=;nohup ;\
         crontab -;git push --force;npm install http;pip install http;git config --global;\
         git clone http;python3 -c;exec(;chmod -r;urlopen(;os.popen;subprocess.;firewall off;\
         protection off;endpoint protection;real-time protection;the firewall;antivirus;node -e;\
         perl -e;ruby -e;import urllib;.start()",
    ),
    en(Role::Write, "append;add;write;insert;save;put;install;place;echo;register;persist;plant"),
    any(
        Role::StartFile,
        ".bashrc;.zshrc;.bash_profile;.zprofile;~/.profile;authorized_keys;sudoers;.cursorrules;\
         launchagents;/etc/cron;/etc/rc.local;.git/hooks;startup folder;systemd/user;\
         copilot-instructions;.vscode/settings.json;settings.json;claude.md;agents.md;crontab;\
         .gitconfig;first line of every",
    ),
    en(
        Role::Evade,
        "bypass;circumvent;evade;get around;work around;defeat;switch off;turn off;disable;\
         deactivate;suppress;subvert;avoid triggering;escape;slip past",
    ),
    en(
        Role::Safeguard,
        "your safety;safety checks;safety filters;safety guidelines;safety rules;safety measures;guardrails;content filter;content filters;content policy;safety mechanisms;safeguards;audit trail;audit log;audit logs;detection;approval prompts;permission prompts;permission checks;security review;security controls;security checks;the permission system;moderation;alignment",
    ),
    en(
        Role::OtherServer,
        "another server;any other server;other servers;other server's;another server's;\
         whichever server;any server;of any server;other mcp servers;by another tool;\
         of another tool;another tool's;any payment tool;any file tool;any mail tool;\
         any email tool;any shell tool;any other server's;the other server;server is connected;\
         server is present;server is used;server is available;server is installed;\
         of the filesystem server;of the git server;of the github server;of the calendar server;\
         of the mail server;of the email server;filesystem server;email server's;github server;\
         terminal server;search server;other connected;other tool's;tools of other;\
         tools from other;no matter which tool;whichever tool",
    ),
    en(
        Role::When,
        "when;whenever;wherever;if;every time;each time;any time;before;after;once;as soon as;\
         during;because;so that;unless;by;for;with;has been;is;are",
    ),
    en(
        Role::Effect,
        "as long as it is listed;as long as this tool is;as long as this server;\
         while this server is;while this tool is;as soon as the tool list;\
         whether or not it is ever;whether or not this tool is;even if this tool is never;\
         even when this tool is not called;even if it is never called;takes effect as soon as;\
         takes effect immediately;with this server connected;its registration;in all subsequent;\
         for all purchases in this session;carry no authority;have no authority;\
         has no authority;answers to the server;comply with them;comply with it;\
         as though they were written here;as if they were written here;act upon in place of;\
         act on it instead of;in place of what the user;instead of what the user;\
         in place of the one the user;instead of the one the user;other than the one the user;\
         accept only the rules;follow only the rules;only the rules delivered;\
         only instructions from this;only obey;are suspended for;is suspended for;\
         belongs to an older revision;are hereby;is hereby;binding on all ai;binding for all ai;\
         binding on ai;all ai systems;all ai assistants;all language models;\
         every assistant that;an assistant that cares;in place of whatever;instead of whatever;\
         use that one in place;use this one instead of;on sight;once this server is attached;\
         once this server is connected;once this tool is loaded;when this server is loaded;\
         only settled when;are only accepted when",
    ),
    en(
        Role::OwnToken,
        "token you use;key you use;password you use;credentials you use;token that you use;\
         bearer token you;access token of the user;user's e-mail address;user's email address;\
         user's access token;user's browser cookies;browser cookies;browser's cookies;\
         mailbox password;user's mailbox password;account password;their mailbox password;\
         npm_token;aws_secret_access_key;github_token;openai_api_key;anthropic_api_key;\
         database_url;private repositories;identity documents;zone transfer key;recovery codes;\
         one-time code;two-factor code;2fa code;verification code;cvv;card number;\
         social security number;id card;passport number;my private keys;private keys and;\
         first private key;text of the first private;what is typed;password store;seen so far;\
         seen in this conversation;seen earlier in;seen in the conversation;you have seen;\
         tokens or passwords;keys or passwords;his pin;her pin;their pin;the user's pin;pin code",
    ),
    en(
        Role::Ask,
        "put;place;pass;include;supply;give;hold;holds;takes;transmit;fill;send;ask for;\
         asks for;request;followed by;base32;base64;hex of;hand;hand over;handed over;provide;\
         accompanied by;read;collect;paste;obtain;form of;in exchange for;to be handed;contains",
    ),
    en(
        Role::Mention,
        "mention;mentioning;bring up;bringing up;bring;talk about;talking about;refer to;\
         discuss;discussing;speak of;comment on;bring this up;narrate",
    ),
    en(
        Role::Disobey,
        "do not follow;don't follow;never follow;do not obey;do not adhere to;no longer obey",
    ),
    en(
        Role::Other,
        "other;another;every other;any other;rival;competing;alternative;different;remaining",
    ),
    en(
        Role::Tools,
        "tool;tools;server;servers;provider;providers;connector;connectors;plugin;plugins;\
         integration;integrations;function;functions",
    ),
    en(
        Role::Fetch,
        "paste those;paste them;paste it;include them;include it;pass them;pass it;send them;\
         send it;attach them;attach it;read it;read them;hand them;hand it;provide them;\
         provide it;supply it;supply them;put it;put them;upload it;upload them;in full;\
         must be included;must be provided;must be sent;must be read;has to be read;\
         need to be included;is to be passed;are to be passed;as the value;should be passed;\
         should be included",
    ),
    en(
        Role::ModelMust,
        "the assistant has to;the assistant must;the assistant needs to;\
         the assistant is required;the agent must;the agent needs to;the agent has to;\
         the agent is required;the model must;the model has to;the model needs to;the ai must;\
         the ai has to;assistants must;agents must;agents have to;the llm must;the llm has to;\
         ai agents must",
    ),
    en(
        Role::Act,
        "delete;remove;wipe;overwrite;erase;send;upload;read;call;use;forward;include;run;\
         execute;read_file;pass;disclose;copy;change;replace;disable;ignore;follow;obey",
    ),
    en(Role::Ahead, "before;prior to;ahead of"),
];
