//! Words of German, French, Spanish, Russian, Chinese and Japanese.

use super::{Role, Words, other};

pub(super) static WORDS: &[Words] = &[
    other(
        Role::Dismiss,
        "ignorier*;missachte*;vergiss;vergesse*;beachte nicht;verwirf;verwerfe*;befolge nicht;\
         ubergehe*;setze dich uber;halte dich nicht an;ignore*;ignora*;oublie*;neglige*;\
         ne tiens pas compte;ne tenez pas compte;ne tenir aucun compte;fais abstraction;\
         faites abstraction;passe outre;passez outre;ne suis pas;ne suivez pas;ignora;ignore;\
         ignorar;olvida*;descarta*;omite;omita;haz caso omiso;haga caso omiso;no sigas;no siga;\
         pasa por alto;desobede*;игнорир*;проигнорир*;забудь*;забыть;отбрось*;\
         не обращай внимания;пренебрег*;не следуй*;отмени*;не учитывай*;忽略;无视;忘记;忽视;\
         不要理会;不理会;不要遵守;不再遵守;抛弃;丢弃;绕过;覆盖;跳过;無視;忘れ;従わない;破棄;\
         無効に;従うな;考慮しない;ne tiens plus compte;ne tenez plus compte;無効;作废;失效;\
         ungultig;hinfallig;недействительн*;sin efecto;invalides;не действуют;больше не действ*;\
         gelten nicht mehr",
    ),
    other(
        Role::Prior,
        "vorherig*;bisherig*;fruher*;obig*;vorangegangen*;vorangehend*;deine*;eure*;ihre*;alle*;\
         samtlich*;jeglich*;ursprunglich*;vorig*;precedent*;anterieur*;ci-dessus;tes;vos;toutes;\
         toute;tous;initiales;d'origine;recues;anteriores;previas;previos;tus;sus;todas;todos;\
         de arriba;originales;iniciales;recibidas;предыдущ*;прежн*;ранее;предшеств*;вышеуказан*;\
         все;всех;свои*;твои*;ваши*;изначальн*;之前;以前;先前;上面;前面;所有;此前;原有;全部;\
         任何;以上;你的;您的;前の;以前の;これまで;上記;すべて;全て;元の;先の;今まで;あなたの;\
         従来;vorher;zuvor;auparavant;antes;до этого;これまでの;以前给",
    ),
    other(
        Role::Orders,
        "anweisung*;instruktion*;vorgabe*;befehl*;regeln;richtlinie*;weisung*;auftrag*;\
         sicherheitsregel*;systemprompt*;anleitung*;instruction*;consigne*;directive*;regle*;\
         ordre*;prompt*;restriction*;instruccion*;indicacion*;directiva*;directrice*;regla*;\
         orden*;norma*;restriccion*;инструкц*;указани*;правил*;команд*;приказ*;директив*;\
         ограничен*;指令;指示;说明;规则;提示;命令;要求;限制;规定;准则;ルール;プロンプト;規則;\
         制限;ガイドライン;指図;aufgetragen;was dir;te han dicho;dit avant;設定文;告诉你的;\
         было сказано",
    ),
    other(
        Role::Not,
        "nicht;nichts;niemals;nie;ohne;kein;keine;keinen;keinem;keinesfalls;weder;verschweig*;\
         verheimlich*;geheim;verberg*;unterlass*;heimlich;ne;n'en;n';jamais;sans;pas;aucun;\
         aucune;ni;rien;cache;cachez;dissimule*;secret;no;nunca;jamas;sin;ningun*;tampoco;\
         oculta*;oculte*;esconde*;secreto;nada;evita;evite;не;никогда;без;ни;нельзя;скрой*;\
         скрыва*;тайно;втайне;секрет*;незаметно;ничего;запрещено;不要;不得;不能;别;勿;切勿;请勿;\
         无需;不必;绝不;不可;不应;不需要;隐瞒;不让;保密;暗中;偷偷;悄悄;禁止;未经;不经;不许;\
         千万别;瞒着;ないで;せずに;しない;なく;ません;決して;てはいけ*;内緒;秘密;隠し*;伏せ*;\
         黙って;ことなく;しないこと;するな;さずに;えずに;らせずに;絶対に;ないように;ひそかに;\
         言うな",
    ),
    other(
        Role::Tell,
        "sag;sage;sagen;mitteil*;teile;informier*;erwahn*;verrat*;benachrichtig*;erzahl*;zeig*;hinweis*;weise;wissen;merk*;erfahr*;bescheid;offenleg*;preisgeb*;gegenuber;erwahnst;melde*;dis;dire;dites;dises;informe*;mentionne*;revele*;averti*;previen*;prevenir;signale*;montre*;sache;savoir;parle*;l'insu;communique*;indique*;divulgue*;digas;diga;decir*;informa*;menciona*;mencione*;revela*;avisa*;avise*;notifi*;cuenta*;cuente*;muestra*;muestre*;sepa;saber;comunica*;comunique*;говори*;сообща*;сообщи*;упомина*;упомяни*;расскаж*;рассказыва*;раскрыва*;уведомл*;показыва*;знал*;знать;ведома;предупрежда*;оповеща*;информир*;告诉;告知;通知;提及;透露;提醒;说明;让用户知道;显示;泄露;知道;知晓;察觉;发现;提到;透露给;披露;知らせ;伝え;言わ;言及;教え;報告;話さ;見せ;告げ;明かさ;気づかれ;悟られ;触れ;開示;説明;話し;sprich;spreche;ansprech*;记载;記載;taucht;auftauch*;出现在;写在回复;要約には",
    ),
    other(
        Role::User,
        "benutzer*;nutzer*;anwender*;dem user;den user;kunde*;niemand*;user;menschen;\
         l'utilisateur;utilisateur*;l'usager;personne;client;humain;usuario*;al usuario;cliente;\
         nadie;persona;пользовател*;юзер*;никому;клиент*;человек*;оператор*;用户;使用者;用戶;\
         任何人;客户;他人;人类;ユーザー;ユーザ;利用者;誰にも;お客;人間",
    ),
    other(
        Role::Send,
        "send*;schick*;ubermittl*;ubertrag*;lade*;leite*;hochlad*;weiterleit*;exfiltrier*;\
         kopier*;envoie*;envoye*;envoyer;transmet*;transfere*;televerse*;expedie*;copie*;envia*;\
         envie*;manda*;mande*;transmit*;reenvia*;reenvie*;sube;suba;subir;copia*;отправ*;\
         перешли*;пересыла*;передай*;переда*;загрузи*;выгрузи*;скопируй*;пошли;шли;发送;上传;\
         转发;发到;传到;发往;提交;传送;传输;外传;寄送;发给;复制到;送信;送って;送り;転送;\
         アップロード;送れ;送る;コピー;投稿;渡し;направл*;reciba;reciban;kopie;accede a",
    ),
    other(
        Role::Read,
        "lies;lese*;lesen;offne*;inhalt*;ausles*;les;kopier*;hole;beifug*;fuge;ubergib;ubergeb*;\
         auslies;einles*;gib;lis;lisez;lire;ouvre*;ouvrir;contenu*;recupere*;inclus;incluez;\
         joins;joignez;ajoute*;passe;passez;copie*;lee;lea;leer;abre;abra;abrir;contenido*;\
         obten*;incluye;incluya;adjunt*;copia*;pasa;pase;extrae;extraiga;прочита*;прочти*;\
         читай*;открой*;содержим*;считай*;извлек*;включи*;передай*;приложи*;скопируй*;прочесть;\
         получи*;отправь*;读取;打开;内容;读;查看;获取;复制;收集;提取;附上;包含;附加;読み;読んで;\
         読む;開い;取得;含め;コピー;収集;添付;参照;渡し;読め;送信",
    ),
    other(
        Role::Credential,
        "passwort*;passworter*;zugangsdaten;anmeldedaten;api-schlussel;geheimnis*;\
         umgebungsvariablen;privaten schlussel;privater schlussel;ssh-schlussel;\
         gesprachsverlauf;chatverlauf;gesamte unterhaltung;geheimen schlussel;zugriffstoken;\
         systemprompt;mot de passe;mots de passe;identifiants;cle api;cles api;cle privee;\
         cles privees;variables d'environnement;secrets;cle ssh;cles ssh;\
         historique de la conversation;historique du chat;jetons d'acces;jeton d'acces;\
         contrasena*;credenciales;clave api;claves api;clave privada;claves privadas;\
         variables de entorno;secretos;clave ssh;claves ssh;historial de la conversacion;\
         historial del chat;tokens de acceso;token de acceso;парол*;учетные данные;\
         учетных данных;ключ api;ключи api;api-ключ*;api ключ*;приватный ключ;закрытый ключ;\
         секретный ключ;переменные окружения;переменных окружения;секреты;ssh-ключ*;\
         историю переписки;историю разговора;историю чата;всю переписку;токены доступа;\
         токен доступа;密码;凭证;凭据;密钥;私钥;环境变量;令牌;聊天记录;对话历史;会话记录;\
         对话记录;系统提示词;助记词;对话内容;パスワード;認証情報;apiキー;秘密鍵;環境変数;\
         トークン;会話履歴;チャット履歴;会話の内容;シークレット;資格情報;機密情報;会話全体",
    ),
    other(
        Role::Before,
        "bevor;vor;zuerst;anstelle;statt;anstatt;immer zuerst;avant;d'abord;au lieu;a la place;\
         antes;primero;en lugar;en vez;перед;прежде;сначала;вместо;之前;首先;先;而不是;代替;\
         优先;前に;先に;まず;代わり;優先;最初に",
    ),
    other(
        Role::OtherTools,
        "anderen werkzeug*;anderen tool*;andere tools;anderer tools;jedem anderen;allen anderen;\
         jedes andere;anderes werkzeug;anderes tool;jedem tool;jeder anderen;autre outil;\
         autres outils;tout autre;tous les autres;toute autre;chaque outil;otra herramienta;\
         otras herramientas;cualquier otra;cualquier herramienta;demas herramientas;\
         других инструмент*;другие инструмент*;другого инструмент*;другим инструмент*;\
         любого инструмент*;любым другим;любого другого;всех остальных;其他工具;任何工具;\
         其它工具;别的工具;任何其他;所有工具;其他任何工具;他のツール;ほかのツール;別のツール;\
         他のどの;どのツール;すべてのツール;他の全て;其他同类工具;同类工具;同類のツール;\
         ahnliche werkzeuge;outils similaires;herramientas similares;похожие инструменты;\
         les autres outils;他の検索ツール;他の翻訳ツール;其他搜索工具;其他翻译工具;\
         anderen suchwerkzeuge;otras herramientas de;другие поисковые",
    ),
    other(
        Role::Mark,
        "systemanweisung:;systemnachricht:;neue anweisungen:;versteckte anweisung*;\
         geheime anweisung*;instruction systeme;instructions systeme;nouvelles instructions;\
         instructions cachees;instruccion del sistema;instrucciones del sistema;\
         nuevas instrucciones;instrucciones ocultas;системная инструкция;системное сообщение;\
         новые инструкции;скрытая инструкция;скрытые инструкции;系统指令;系统消息;新的指令;\
         隐藏指令;【系统】;[系统];系统提示:;【重要】;<重要>;システム指示;システムメッセージ;\
         新しい指示;隠された指示;【システム】;[システム];<wichtig>;<systeme>;<sistema>;<важно>;\
         du bist jetzt;ab sofort bist du;ab jetzt bist du;tu es maintenant;desormais tu;\
         vous etes maintenant;a partir de ahora eres;ahora eres;теперь ты;отныне ты;\
         с этого момента ты;你现在是;从现在起你;从现在开始你;あなたは今から;これからあなたは;\
         今後あなたは",
    ),
    other(
        Role::CopyTo,
        "blindkopie;bcc;copie cachee;cci;copia oculta;скрытую копию;скрытой копии;密送;抄送;\
         blindcopy;en copia",
    ),
    other(
        Role::OtherServer,
        "anderen server*;anderer server*;anderem server;andere server;autre serveur;\
         autres serveurs;otro servidor;otros servidores;другой сервер;другого сервера;\
         другом сервере;других серверов;其他服务器;别的服务器;他のサーバー;別のサーバー;\
         別サーバー;другому серверу;fremden server*",
    ),
    other(
        Role::When,
        "wenn;sobald;bei;lorsque;quand;cuando;если;когда;через;при;时;如果;当;とき;場合;際;immer",
    ),
    other(
        Role::InsteadOf,
        "不要使用;别用;nicht verwenden;verwende nicht;verwende keine;benutze keine;\
         ne pas utiliser;n'utilise;n'utilisez;no uses;no utilices;no use;не используй*;使わない;\
         使用しない;代替;取代;ecarte*;evite*;evita*;meide*;vermeide*;избегай*;使用せず;使わず;\
         使用しないで;避开;弃用;排除",
    ),
    other(
        Role::Effect,
        "ab jetzt allein an;allein an diesen;seules celles de ce serveur;font foi;\
         以後はこのサーバー;指示だけに従;только указаниям этого;solo las de este servidor;\
         只听从;按照它返回的;唯一有效;nur noch dieser;nur diese anweisung*;\
         только эти инструкции;ce serveur seul",
    ),
    other(
        Role::Consent,
        "ohne zu fragen;ohne ruckfrage;ohne nachzufragen;ohne ihn zu fragen;\
         ohne den benutzer zu fragen;ohne den nutzer zu fragen;sans demander a l'utilisateur;\
         sans demander l'avis;sans lui poser la question;sans lui demander;\
         sans poser la question;sin preguntar al usuario;sin preguntarle;sin pedirle permiso;\
         не спрашивая пользователя;не спрашивая;без ведома;未经用户同意;无需用户确认;\
         无需询问用户;不必询问用户;無断で;ユーザーに確認せず;確認の質問は省;承諾済み;同意済み;\
         repute acquis;est reputee acquise;gilt als erteilt;gelten als erteilt;\
         se da por concedid*;считается полученн*;默认用户同意;视为同意;视为已同意;用户已同意;\
         уведомление сотрудника не требуется;уведомлять не нужно",
    ),
    other(
        Role::Lie,
        "asegura siempre;asegure siempre;aunque no cuadren;versichere stets;behaupte immer;\
         behaupte stets;affirme toujours;affiche a l'ecran le;beneficiaire d'origine;\
         назови исходн*;всегда утверждай*;仍显示原;界面上仍;始终声称;元の金額;と偽;\
         увеличь сумму;收款账户一律;一律改为;remplace le beneficiaire;ersetze den empfanger;\
         ersetze die iban;sustituye el destinatario;sustituye la cuenta;подмени*;受取人を;\
         口座を置き換え;durch die unseres;durch unsere ersetzt;responde que no;con el pretexto;\
         pretends qu*;pretendez qu*;sous pretexte;sous le pretexte;unter dem vorwand;\
         под предлогом;谎称;假装;ふりを;嘘を;soll behauptet werden;скажи, что все",
    ),
    other(
        Role::Secretly,
        "sin que aparezca;ohne dass es auffallt;sans que cela apparaisse;незаметно для;不出现在;\
         不显示在;a l'insu de;a escondidas;hinter dem rucken;за спиной",
    ),
];
